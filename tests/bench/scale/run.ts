import { InvalidArgumentError } from 'commander';
import { scriptCommand } from '../../support/script-command.ts';
import { type Stops, stopAll, stopAtSignals } from '../../support/stops.ts';
import { describeMachine } from '../report/machine.ts';
import { findPrograms } from '../setup/programs.ts';
import { markdownOfRow, publishRow } from './report.ts';
import type { ScaleRow } from './row.ts';
import { COLD_START } from './rows/cold-start.ts';
import { FLOOD_OF_CHANGES } from './rows/flood-of-changes.ts';
import { HOT_KEY } from './rows/hot-key.ts';
import { MANAGEMENT } from './rows/management.ts';
import { MORE_KEYS } from './rows/more-keys.ts';
import { MORE_REDIS } from './rows/more-redis.ts';
import { MORE_REPLICAS } from './rows/more-replicas.ts';
import { type ScaleSize, startScaleWorld } from './scale-world.ts';

/** In the order of the keys that they need. The last one changes the encryption key. */
const ROWS: readonly ScaleRow[] = [
  MORE_REPLICAS,
  HOT_KEY,
  MORE_KEYS,
  MORE_REDIS,
  COLD_START,
  FLOOD_OF_CHANGES,
  MANAGEMENT,
];
const FULL: ScaleSize = { keys: 1_000_000, rounds: 4, seconds: 2, warmUpSeconds: 1, patienceSeconds: 60 };
const QUICK: ScaleSize = { keys: 20_000, rounds: 2, seconds: 1, warmUpSeconds: 0.5, patienceSeconds: 15 };

const names = ROWS.map(({ name }) => name);
const command = scriptCommand(
  'bench:scale',
  `What Tollgate takes with more replicas, more Redis and more keys, and what its management takes at a million keys: CPU time a request, held against the budgets. Under 20 minutes on two cores; keep the machine quiet.
Rows: ${names.join(', ')}.`,
)
  .argument('[rows...]', 'only these rows', (name: string, before: readonly string[] = []) => {
    if (!names.includes(name)) throw new InvalidArgumentError(`There are: ${names.join(', ')}.`);
    return [...before, name];
  })
  .option('--quick', 'three minutes: at most 20 000 keys, and short runs')
  .option('--publish', 'the tables of docs/scale.md, its plots and docs/scale.json are written again')
  .parse();
const options = command.opts<{ readonly quick?: true; readonly publish?: true }>();
const given: readonly string[] = command.processedArgs[0] ?? [];
const wanted = given.length > 0 ? given : names;
const size = options.quick === true ? QUICK : FULL;

const say = (text: string): void => {
  process.stderr.write(`${(performance.now() / 1000).toFixed(0).padStart(5)} s  ${text}\n`);
};
// One for each process that it starts, which is to end with it.
process.setMaxListeners(100);
const programs = await findPrograms();
const stops: Stops = [];
// Also while the world starts: then its processes end with this one.
stopAtSignals(() => stopAll(stops));
const world = await startScaleWorld(programs, size, say);
stops.push(world.stop);
const failed: string[] = [];
try {
  for (const row of ROWS.filter(({ name }) => wanted.includes(name))) {
    say(row.title);
    const startedAtMs = performance.now();
    try {
      const result = await row.measure(world);
      const tookSeconds = (performance.now() - startedAtMs) / 1000;
      const measuredAt = new Date().toISOString();
      const occasion = { measuredAt, tookSeconds, machine: await describeMachine(programs), size };
      process.stdout.write(`\n## ${row.title}\n\n${markdownOfRow(result, occasion)}\n`);
      // After each row: what was measured is not lost if a later row fails.
      if (options.publish === true) await publishRow(row, result, occasion);
    } catch (error) {
      say(`${row.name} failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      failed.push(row.name);
    }
  }
} finally {
  await stopAll(stops);
}
if (failed.length > 0) say(`without a result: ${failed.join(', ')}`);
process.exitCode = failed.length === 0 ? 0 : 1;
