import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import type { RecordsDatabase } from '../../src/storage/postgres/records-database.ts';
import { freePort } from '../support/free-port.ts';
import { positiveNumber, scriptCommand } from '../support/script-command.ts';
import { printFigure } from './report/table.ts';
import { taskWithWebhook, writeUsage } from './setup/usage-delivery.ts';
import { withRecords } from './setup/with-records.ts';

const script = scriptCommand(
  'bench:events',
  'How long one replica takes to send the usage of an hour, an event for each key, in batches to a receiver in another process; the CPU time of the replica without Postgres and the receiver, and its memory.',
)
  .argument('[keys]', 'keys that were used in the hour', positiveNumber(10_000_000), 100_000)
  .option('--away', 'one delivery for each event, to a receiver that rejects connections until all are made')
  .parse();
const keys: number = script.processedArgs[0];
const { away: isAway = false }: { readonly away?: boolean } = script.opts();

const SAMPLE_MS = 250;
const MEBIBYTE = 2 ** 20;

let received = 0;
let requests = 0;
let receiver: ChildProcess | undefined;

async function startReceiver(port: number): Promise<void> {
  receiver = fork(join(import.meta.dirname, 'setup/count-events.ts'), [String(port)]);
  await once(receiver, 'message');
  receiver.on('message', ({ events }: { readonly events: number }) => {
    received += events;
    requests += 1;
  });
}

async function measure(records: Records): Promise<void> {
  const port = await freePort();
  await startReceiver(port);
  const task = await taskWithWebhook(records, { url: `http://127.0.0.1:${port}/in`, batch: true });
  await writeUsage(records, keys);
  const meter = new Meter();
  task.start();
  await meter.sampleUntil(async () => received >= keys);
  printFigure('events of usage', keys, 'events');
  printFigure('requests', requests, 'requests');
  meter.report('from the first to the last');
  await task.stop();
}

async function measureBacklog(records: Records): Promise<void> {
  const { db } = records;
  const port = await freePort();
  const task = await taskWithWebhook(records, { url: `http://127.0.0.1:${port}/in`, batch: false });
  await writeUsage(records, keys);
  const filling = new Meter();
  task.start();
  await filling.sampleUntil(async () => (await countDeliveries(db)) === keys);
  printFigure('deliveries that wait', keys, 'deliveries');
  filling.report('until all wait');
  await sayTables(db);
  const { rows } = await sql<{
    attempts: string;
  }>`SELECT sum(tries) AS attempts FROM webhook_deliveries`.execute(db);
  printFigure('attempts while the receiver was away', Number(rows[0]?.attempts), 'attempts');
  await startReceiver(port);
  // In place of up to 24 hours: all that failed is due.
  await sql`UPDATE webhook_deliveries SET next_attempt_at = now() WHERE next_attempt_at > now()`.execute(db);
  const draining = new Meter();
  await draining.sampleUntil(async () => received >= keys);
  draining.report('until all are delivered');
  printFigure('requests', requests, 'requests');
  await sayTables(db);
  await task.stop();
}

async function countDeliveries(db: RecordsDatabase): Promise<number> {
  const { rows } = await sql<{
    count: number;
  }>`SELECT count(*)::int AS count FROM webhook_deliveries`.execute(db);
  return rows[0]?.count ?? 0;
}

async function sayTables(db: RecordsDatabase): Promise<void> {
  for (const table of ['webhook_deliveries', 'events']) {
    const { rows } = await sql<{ bytes: string }>`SELECT pg_total_relation_size(${table}) AS bytes`.execute(
      db,
    );
    printFigure(`table ${table}, with its indexes`, Number(rows[0]?.bytes) / MEBIBYTE, 'MiB');
  }
}

/** Measures this process, from its construction on. */
class Meter {
  readonly #beforeBytes = process.memoryUsage.rss();
  readonly #cpu = process.cpuUsage();
  readonly #startedAtMs = performance.now();
  #mostBytes = 0;

  async sampleUntil(isOver: () => Promise<boolean>): Promise<void> {
    while (!(await isOver())) {
      await wait(SAMPLE_MS);
      this.#mostBytes = Math.max(this.#mostBytes, process.memoryUsage.rss());
    }
  }

  report(what: string): void {
    const seconds = (performance.now() - this.#startedAtMs) / 1000;
    const { user, system } = process.cpuUsage(this.#cpu);
    const cpuSeconds = (user + system) / 1e6;
    printFigure(what, seconds, 's');
    printFigure('CPU time of the replica', cpuSeconds, 's');
    printFigure('share of a core', (cpuSeconds / seconds) * 100, '%');
    printFigure('CPU time of a million events', (cpuSeconds / keys) * 1e6, 's');
    printFigure('resident memory before', this.#beforeBytes / MEBIBYTE, 'MiB');
    printFigure('resident memory at most', this.#mostBytes / MEBIBYTE, 'MiB');
  }
}

try {
  await withRecords(isAway ? measureBacklog : measure);
} finally {
  receiver?.disconnect();
}
