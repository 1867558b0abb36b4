import { BlockList } from 'node:net';
import { sql } from 'kysely';
import { pino } from 'pino';
import { AddressPolicy } from '../../../src/events/delivery/address-policy.ts';
import { Deliverer } from '../../../src/events/delivery/deliverer.ts';
import { DeliveryTask } from '../../../src/events/delivery/delivery-task.ts';
import { nameResolver } from '../../../src/events/delivery/resolve-name.ts';
import { DeliverySender } from '../../../src/events/delivery/send-delivery.ts';
import { TimedEvents } from '../../../src/events/timed/timed-events.ts';
import { WebhookService } from '../../../src/events/webhook-service.ts';
import { withoutSecrets } from '../../../src/keys/secrets/secret-redactor.ts';
import { ROOT } from '../../../src/permissions/principal.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { idMaker } from '../../../src/platform/id-maker.ts';
import { systemRandom } from '../../../src/platform/random.ts';
import { PostgresTimedEvents } from '../../../src/storage/postgres/events/postgres-timed-events.ts';
import type { Records } from '../../../src/storage/postgres/open-records.ts';
import { sampleChange } from '../../support/sample-records.ts';
import { TEST_VAULT } from '../../support/test-vault.ts';

const HOUR_MS = 3_600_000;
const ROWS_AT_ONCE = 50_000;

/** A webhook for events of usage. */
export interface UsageWebhook {
  readonly url: string;
  readonly batch: boolean;
}

/** What a replica has that delivers to this webhook, without the rest of it. For it the hour is complete. */
export async function taskWithWebhook(
  { db, webhooks: repository, deliveries: queue }: Records,
  { url, batch }: UsageWebhook,
): Promise<DeliveryTask> {
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
  const fields = { url, events: ['tollgate.usage.hour'], onlyTags: [], externalId: null, description: '' };
  const rest = { enabled: true, batch, headers: {} };
  await service.create({ ...fields, ...rest }, ROOT, sampleChange({ atMs: systemClock.nowMs() }));
  const log = pino({ level: 'warn' });
  const sender = new DeliverySender(policy, systemClock);
  return new DeliveryTask({
    deliverer: new Deliverer({ ...common, queue, repository, sender, log }),
    timed: new TimedEvents({
      store: new PostgresTimedEvents(db),
      usageCompleteUntilMs: async () => systemClock.nowMs() + HOUR_MS,
      makeId: idMaker('', systemClock, systemRandom),
      mask: withoutSecrets,
    }),
    log,
    monotonicMs: () => systemClock.monotonicMs(),
  });
}

/** Writes the usage of keys in the present hour, as the flusher does. */
export async function writeUsage({ db }: Records, keys: number): Promise<void> {
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
