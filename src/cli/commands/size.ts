import type { Command } from 'commander';
import { CommandFault } from '../command-fault.ts';
import type { Declare } from '../declare.ts';
import { wholeNumberFrom } from '../option-values.ts';
import type { Listing } from '../output/columns.ts';
import { Output, type OutputOptions, writesData } from '../output/output.ts';
import { readScaleConstants } from '../sizing/scale-constants.ts';
import { type Demand, sizeInstallation } from '../sizing/size-installation.ts';
import { limitLine, type SizeLine, sizeLines } from '../sizing/size-lines.ts';

type SizeOptions = Omit<Demand, 'activeKeys'> & { readonly activeKeys?: number } & OutputOptions;

const MOST_KEYS = 1_000_000_000;

export const declareSize: Declare = (command, terminal) =>
  void writesData(withDemand(command)).action(async (options: SizeOptions) => {
    const { keys, activeKeys = keys } = options;
    if (activeKeys > keys) throw new CommandFault('usage', '--active-keys must not be more than --keys.');
    const size = sizeInstallation({ ...options, activeKeys }, readScaleConstants());
    const output = new Output(options, terminal);
    await output.report(SIZE, sizeLines(size), size);
    if (output.format !== 'table') return;
    output.note('\nLimits, the nearest first:');
    for (const limit of size.limits) output.note(limitLine(limit));
  });

function withDemand(command: Command): Command {
  return command
    .description(
      'Says what an installation needs for a number of requests and keys, from constants that a benchmark measured (docs/sizing.md says how). It asks no gateway. The limits of the installation are on standard error, and in JSON and YAML.',
    )
    .requiredOption(
      '--rps <requests>',
      'requests a second in the busiest hour, 1 to 10 000 000',
      wholeNumberFrom(1, 10_000_000),
    )
    .requiredOption('--keys <keys>', 'keys, 1 to 1 000 000 000', wholeNumberFrom(1, MOST_KEYS))
    .option('--active-keys <keys>', 'keys that are used at all (default: all)', wholeNumberFrom(1, MOST_KEYS))
    .option('--customers <names>', 'customers of a key', wholeNumberFrom(1, 1_000_000), 1)
    .option('--endpoints <names>', 'endpoints of a key', wholeNumberFrom(1, 1_000_000), 5)
    .option(
      '--months <months>',
      'that usage by hour is kept (USAGE_RETENTION_DAYS)',
      wholeNumberFrom(1, 1200),
      3,
    )
    .option(
      '--daily-months <months>',
      'that usage by day of endpoints and customers is kept (USAGE_DAILY_RETENTION_DAYS)',
      wholeNumberFrom(1, 1200),
      13,
    )
    .option('--windows <limits>', 'limits that a request counts in', wholeNumberFrom(1, 16), 1)
    .option(
      '--replicas <replicas>',
      'this number of replicas (default: what the requests need)',
      wholeNumberFrom(1, 100_000),
    )
    .addHelpText(
      'after',
      `
Examples:
  tollgate size --rps 20000 --keys 1000000 --months 13
  tollgate size --rps 500 --keys 2000 --customers 20 -o json | jq .postgresDiskBytes`,
    );
}

const SIZE: Listing<SizeLine> = {
  columns: [
    { name: 'what', toCell: ({ what }) => what },
    { name: 'size', toCell: ({ size }) => size },
  ],
  idOf: ({ what }) => what,
};
