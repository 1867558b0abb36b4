import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { makeKeys, startWorld } from '../chaos/world.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { positiveNumber, scriptCommand } from '../support/script-command.ts';
import { type Stops, stopAll, stopAtSignals } from '../support/stops.ts';
import { flatnessOf, type Series } from './flatness.ts';
import { measure } from './measure.ts';
import { startUse } from './use.ts';

const MEASUREMENTS_A_MINUTE = 4;
const MINUTE_MS = 60_000;

const script = scriptCommand(
  'soak',
  'Two replicas, one of them with two workers, are used in every way for hours, all is measured four times a minute: memory and open files of each process, memory of Redis, disk of each table of Postgres by its rows. Ends with 0 when all of it is flat from the second quarter to the last one.',
)
  .argument('[minutes]', 'how long, from 2 to a day', positiveNumber(24 * 60), 120)
  .parse();
const minutes: number = script.processedArgs[0];

/** What has been started and not stopped. */
const running: Stops = [];
stopAtSignals(() => stopAll(running));
let isFlat = false;
try {
  isFlat = await soak();
} finally {
  await stopAll(running);
}
process.exit(isFlat ? 0 : 1);

async function soak(): Promise<boolean> {
  const redisServer = await startRedisServer();
  running.push(() => redisServer.stop());
  const world = await startWorld([1, 2], { REDIS_URL: redisServer.url });
  running.push(() => world.stop());
  const redis = new Redis(redisServer.url);
  running.push(async () => redis.disconnect());
  const use = startUse(world, await makeKeys(world));
  report(`${minutes} minutes`);
  const measured = new Map<string, Series & { readonly values: number[] }>();
  const deadline = performance.now() + minutes * MINUTE_MS;
  for (let number = 1; performance.now() < deadline; number += 1) {
    await wait(MINUTE_MS / MEASUREMENTS_A_MINUTE);
    for (const { name, unit, value } of await measure(world, redis)) {
      const series = measured.get(name) ?? { name, unit, values: [] };
      series.values.push(value);
      measured.set(name, series);
    }
    if (number % (10 * MEASUREMENTS_A_MINUTE) === 0) report(lastOf([...measured.values()]));
  }
  await use.stop();
  for (const [ending, count] of [...use.endings].toSorted())
    report(`${String(count).padStart(8)} × ${ending}`);
  const growing = [...measured.values()].filter((series) => !tell(series));
  report(growing.length === 0 ? 'all is flat' : `${growing.length} grow`);
  return growing.length === 0;
}

/** Whether it is flat. */
function tell(series: Series): boolean {
  const { early, late, isFlat } = flatnessOf(series);
  const figures = `${early.toFixed(0)} → ${late.toFixed(0)} ${series.unit}`;
  report(`${isFlat ? 'flat' : 'GROWS'}  ${series.name}: ${figures}`);
  return isFlat;
}

function lastOf(measured: readonly Series[]): string {
  return measured
    .filter(({ unit }) => unit !== 'bytes a row')
    .map(({ name, values }) => `${name} ${values.at(-1)?.toFixed(0)}`)
    .join(', ');
}

function report(line: string): void {
  process.stdout.write(`${(performance.now() / 1000).toFixed(1).padStart(8)} s  ${line}\n`);
}
