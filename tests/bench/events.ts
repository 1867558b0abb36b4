import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { BlockList } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { sql } from 'kysely';
import { pino } from 'pino';
import { AddressPolicy } from '../../src/events/delivery/address-policy.ts';
import { Deliverer } from '../../src/events/delivery/deliverer.ts';
import { DeliveryTask } from '../../src/events/delivery/delivery-task.ts';
import { nameResolver } from '../../src/events/delivery/resolve-name.ts';
import { DeliverySender } from '../../src/events/delivery/send-delivery.ts';
import { TimedEvents } from '../../src/events/timed/timed-events.ts';
import { WebhookService } from '../../src/events/webhook-service.ts';
import { ROOT } from '../../src/permissions/principal.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { idMaker } from '../../src/platform/id-maker.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { PostgresTimedEvents } from '../../src/storage/postgres/events/postgres-timed-events.ts';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import { sampleChange } from '../support/sample-records.ts';
import { positiveNumber, scriptCommand } from '../support/script-command.ts';
import { TEST_VAULT } from '../support/test-vault.ts';
import { withRecords } from './setup/with-records.ts';

const script = scriptCommand(
  'bench:events',
  'How long one replica takes to send the usage of an hour, an event for each key, in batches to a receiver in another process; the CPU time of the replica without Postgres and the receiver, and its memory.',
)
  .argument('[keys]', 'keys that were used in the hour', positiveNumber(10_000_000), 100_000)
  .parse();
const keys: number = script.processedArgs[0];

const HOUR_MS = 3_600_000;
const ROWS_AT_ONCE = 50_000;
const SAMPLE_MS = 250;
const MEBIBYTE = 2 ** 20;

const out = createWriteStream('', { fd: 1 });
const say = (name: string, value: number, unit: string) =>
  out.write(
    `${name.padEnd(58)} ${value.toLocaleString('en', { maximumFractionDigits: 2 }).padStart(12)} ${unit}\n`,
  );

const receiver = fork(join(import.meta.dirname, 'setup/count-events.ts'));
const [{ port }] = (await once(receiver, 'message')) as [{ readonly port: number }];
let received = 0;
let requests = 0;
receiver.on('message', ({ events }: { readonly events: number }) => {
  received += events;
  requests += 1;
});
try {
  await withRecords(measure);
} finally {
  receiver.disconnect();
}

async function measure(records: Records): Promise<void> {
  const task = await taskWithWebhook(records);
  await fill(records);
  const memory = { before: process.memoryUsage.rss(), most: 0 };
  const cpu = process.cpuUsage();
  const startedAtMs = performance.now();
  task.start();
  while (received < keys) {
    await wait(SAMPLE_MS);
    memory.most = Math.max(memory.most, process.memoryUsage.rss());
  }
  const seconds = (performance.now() - startedAtMs) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  await task.stop();
  const cpuSeconds = (user + system) / 1e6;
  say('events of usage', keys, 'events');
  say('requests', requests, 'requests');
  say('from the first to the last', seconds, 's');
  say('CPU time of the replica', cpuSeconds, 's');
  say('share of a core', (cpuSeconds / seconds) * 100, '%');
  say('CPU time of a million events', (cpuSeconds / keys) * 1e6, 's');
  say('resident memory before', memory.before / MEBIBYTE, 'MiB');
  say('resident memory at most', memory.most / MEBIBYTE, 'MiB');
}

/** What a replica has, without the rest of it. For it the hour is complete. */
async function taskWithWebhook({
  db,
  webhooks: repository,
  deliveries: queue,
}: Records): Promise<DeliveryTask> {
  const allowedNetworks = new BlockList();
  allowedNetworks.addSubnet('127.0.0.0', 8, 'ipv4');
  const policy = new AddressPolicy({ allowHttp: true, allowedNetworks }, nameResolver());
  const common = { source: '/tollgate', vault: TEST_VAULT, clock: systemClock, random: systemRandom };
  const service = new WebhookService({
    ...common,
    repository,
    policy,
    wake: () => {},
    makeId: idMaker('whk_', common.clock, common.random),
    makeDeliveryId: idMaker('dlv_', common.clock, common.random),
  });
  const url = `http://127.0.0.1:${port}/in`;
  const fields = { url, events: ['tollgate.usage.hour'], onlyTags: [], externalId: null, description: '' };
  const rest = { enabled: true, batch: true, headers: {} };
  await service.create({ ...fields, ...rest }, ROOT, sampleChange({ atMs: systemClock.nowMs() }));
  const log = pino({ level: 'warn' });
  const sender = new DeliverySender(policy, systemClock);
  return new DeliveryTask({
    deliverer: new Deliverer({ ...common, queue, repository, sender, log }),
    timed: new TimedEvents({
      store: new PostgresTimedEvents(db),
      usageCompleteUntilMs: async () => systemClock.nowMs() + HOUR_MS,
      makeId: idMaker('', systemClock, systemRandom),
    }),
    log,
    monotonicMs: () => systemClock.monotonicMs(),
  });
}

/** The usage of all keys in the present hour, as the flusher writes it. */
async function fill({ db }: Records): Promise<void> {
  const hour = new Date(Math.floor(systemClock.nowMs() / HOUR_MS) * HOUR_MS);
  for (let from = 0; from < keys; from += ROWS_AT_ONCE) {
    const to = Math.min(keys, from + ROWS_AT_ONCE) - 1;
    await sql`
      INSERT INTO usage_unsent (hour, key_id, requests, successful, rate_limited, units, bytes_in, bytes_out)
      SELECT ${hour}, 'key_' || lpad((number * 7919 % ${keys}::bigint)::text, 26, '0'), 1200, 1180, 5, 3585, 48000, 2400000
      FROM generate_series(${from}::bigint, ${to}::bigint) AS number ON CONFLICT DO NOTHING`.execute(db);
  }
  const { rows } = await sql<{ filled: string }>`SELECT count(*) AS filled FROM usage_unsent`.execute(db);
  if (Number(rows[0]?.filled) !== keys) throw new Error('the number of keys must have no divisor 7919');
}
