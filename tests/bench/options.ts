import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { positiveNumber, scriptCommand, wholeNumber } from '../support/script-command.ts';
import { CASES } from './cases.ts';
import type { EnvoyPrograms } from './setup/envoy.ts';

/** How much is measured. */
export interface BenchOptions {
  readonly isQuick: boolean;
  /** Ids of the cases to run, in the order of the table. */
  readonly caseIds: readonly string[];
  /** Of each case; the main case has twice as many. */
  readonly rounds: number;
  /** Of one measured run of the load. */
  readonly seconds: number;
  /** Of the run before it, which is not measured. */
  readonly warmUpSeconds: number;
  /** After each run against Tollgate, so that its usage is written by the process and in the round that caused it. Milliseconds. */
  readonly settleMs: number;
  /** Of two workers against one; 0 = none. */
  readonly workerRounds: number;
  /** Of decisions for other gateways; 0 = none. */
  readonly decisionRounds: number;
  /** Requests of the memory run; 0 = none. */
  readonly memoryRequests: number;
  /** First starts, and as many later ones, of the start-up measurement; 0 = none. */
  readonly starts: number;
  /** More arguments for the node that runs Tollgate, such as `--cpu-prof`. */
  readonly nodeArguments: readonly string[];
  /** Another checkout, whose gateway takes part as `tollgate-before`; none by default. */
  readonly against: string | undefined;
  /** Takes part where its programs are given. */
  readonly envoy: EnvoyPrograms | undefined;
  /** Where the results are written. */
  readonly directory: string;
  /** Whether the tables also replace those of `docs/performance.md`. */
  readonly isPublished: boolean;
}

/** Reads the command line. Ends the process with a sentence for an option or a case that does not exist. */
export function readOptions(args: readonly string[]): BenchOptions {
  const command = benchCommand();
  const given = command.parse(args, { from: 'user' }).opts<GivenOptions>();
  const { envoy, ratelimit } = given;
  if ((envoy === undefined) !== (ratelimit === undefined))
    command.error('error: --envoy and --ratelimit are given together, or neither.');
  const isQuick = given.quick === true;
  const rounds = given.rounds ?? (isQuick ? 2 : 10);
  return {
    isQuick,
    caseIds: given.case ?? CASES.map(({ id }) => id),
    rounds,
    seconds: given.seconds ?? (isQuick ? 0.5 : 2),
    warmUpSeconds: isQuick ? 0.2 : 0.5,
    settleMs: isQuick ? 250 : 2600,
    workerRounds: given.workerRounds ?? (isQuick ? 1 : 2 * rounds),
    decisionRounds: given.decisionRounds ?? rounds,
    memoryRequests: given.memoryRequests ?? (isQuick ? 10_000 : 1_000_000),
    starts: given.starts ?? (isQuick ? 1 : 5),
    nodeArguments: given.nodeArgument ?? [],
    against: given.against === undefined ? undefined : resolve(given.against),
    envoy: envoy && ratelimit ? { envoy: resolve(envoy), ratelimit: resolve(ratelimit) } : undefined,
    directory: given.out ?? (given.publish === true ? 'docs/performance' : '.tmp/bench'),
    isPublished: given.publish === true,
  };
}

/** What was given of the options below, by the names that Commander makes of theirs. */
interface GivenOptions {
  readonly quick?: true;
  readonly publish?: true;
  readonly case?: readonly string[];
  readonly rounds?: number;
  readonly seconds?: number;
  readonly workerRounds?: number;
  readonly decisionRounds?: number;
  readonly memoryRequests?: number;
  readonly starts?: number;
  readonly nodeArgument?: readonly string[];
  readonly against?: string;
  readonly envoy?: string;
  readonly ratelimit?: string;
  readonly out?: string;
}

function benchCommand(): Command {
  const ids = CASES.map(({ id }) => id);
  const width = Math.max(...ids.map(({ length }) => length));
  const cases = CASES.map(({ id, title }) => `  ${id.padEnd(width)}  ${title}\n`).join('');
  return scriptCommand('bench', 'Measures Tollgate beside other gateways that do the same work.')
    .option('--quick', 'short runs; only the first case is warm')
    .addOption(
      // Not by `choices`, which would list them all a second time.
      new Option('--case <id...>', 'only this case; may be given several times').argParser(
        (id: string, before: readonly string[] | undefined) => {
          if (!ids.includes(id)) throw new InvalidArgumentError(`There are: ${ids.join(', ')}.`);
          return [...(before ?? []), id];
        },
      ),
    )
    .option(
      '--rounds <number>',
      'of each case, twice as many of the first; 10, with --quick 2',
      wholeNumber(1),
    )
    .option('--seconds <number>', 'of each measured run; 2, with --quick 0.5', positiveNumber())
    .option('--worker-rounds <number>', 'of two workers against one; 0 = none', wholeNumber())
    .option('--decision-rounds <number>', 'of decisions for other gateways; 0 = none', wholeNumber())
    .option('--memory-requests <number>', 'of the memory run; 0 = none', wholeNumber())
    .option('--starts <number>', 'first starts, and as many later ones; 0 = none', wholeNumber())
    .option('--node-argument <argument...>', 'for the node that runs Tollgate; --node-argument=--cpu-prof')
    .option('--against <directory>', 'another checkout, whose gateway takes turns with this one')
    .option('--envoy <path>', 'of the program of Envoy, which then takes part')
    .option('--ratelimit <path>', 'of the service of envoyproxy/ratelimit, which Envoy asks')
    .option('--out <directory>', 'for the results; .tmp/bench, with --publish docs/performance')
    .option('--publish', 'the tables of docs/performance.md are written again as well')
    .addHelpText('after', `\nCases:\n${cases}`);
}
