import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { CASES } from './cases.ts';

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
  /** Requests of the memory run; 0 = none. */
  readonly memoryRequests: number;
  /** First starts, and as many later ones, of the start-up measurement; 0 = none. */
  readonly starts: number;
  /** More arguments for the node that runs Tollgate, such as `--cpu-prof`. */
  readonly nodeArguments: readonly string[];
  /** Another checkout, whose gateway takes part as `tollgate-before`; none by default. */
  readonly against: string | undefined;
  /** Where the results are written. */
  readonly directory: string;
  /** Whether the tables also replace those of `docs/performance.md`. */
  readonly isPublished: boolean;
}

/** Reads the command line. Throws for an option or a case that does not exist. */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      publish: { type: 'boolean', default: false },
      case: { type: 'string', multiple: true },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      'worker-rounds': { type: 'string' },
      'memory-requests': { type: 'string' },
      starts: { type: 'string' },
      'node-argument': { type: 'string', multiple: true },
      against: { type: 'string' },
      out: { type: 'string' },
    },
  });
  const isQuick = values.quick;
  const known = CASES.map(({ id }) => id);
  const unknown = (values.case ?? []).filter((id) => !known.includes(id));
  if (unknown.length > 0)
    throw new Error(`No such case: ${unknown.join(', ')}. There are: ${known.join(', ')}`);
  const rounds = whole(values.rounds, isQuick ? 2 : 10);
  return {
    isQuick,
    caseIds: values.case ?? known,
    rounds,
    seconds: values.seconds === undefined && isQuick ? 0.5 : whole(values.seconds, 2),
    warmUpSeconds: isQuick ? 0.2 : 0.5,
    settleMs: isQuick ? 250 : 2600,
    workerRounds: whole(values['worker-rounds'], isQuick ? 1 : 2 * rounds),
    memoryRequests: whole(values['memory-requests'], isQuick ? 10_000 : 1_000_000),
    starts: whole(values.starts, isQuick ? 1 : 5),
    nodeArguments: values['node-argument'] ?? [],
    against: values.against === undefined ? undefined : resolve(values.against),
    directory: values.out ?? (values.publish ? 'docs/performance' : '.tmp/bench'),
    isPublished: values.publish,
  };
}

function whole(text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (!/^\d+$/.test(text)) throw new Error(`"${text}" is not a whole number.`);
  return Number(text);
}
