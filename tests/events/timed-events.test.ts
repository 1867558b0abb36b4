import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { type CloudEvent, HTTP } from 'cloudevents';
import fc from 'fast-check';
import { sql } from 'kysely';
import { EVENT_TYPES } from '../../src/events/event-types.ts';
import { cloudEventText, type OutboxEvent } from '../../src/events/outbox-event.ts';
import { TimedEvents } from '../../src/events/timed/timed-events.ts';
import type { StoredWebhook } from '../../src/events/webhook.ts';
import { withoutSecrets } from '../../src/keys/secrets/secret-redactor.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { idMaker } from '../../src/platform/id-maker.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';
import { PostgresEventReader } from '../../src/storage/postgres/events/postgres-event-reader.ts';
import { PostgresTimedEvents } from '../../src/storage/postgres/events/postgres-timed-events.ts';
import { PostgresUsageHistory } from '../../src/storage/postgres/usage/postgres-usage-history.ts';
import { noCounts, type UsageSlice } from '../../src/usage/usage-slice.ts';
import { deleteKey } from '../support/one-key.ts';
import { createPostgresRecords, type TestRecords } from '../support/records.ts';
import { sampleChange, sampleKey, storeKey, storeKeys } from '../support/sample-records.ts';
import { until } from '../support/until.ts';
import { eventsAfter } from './support/events-after.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The last hour of a month. */
const HOUR = Date.UTC(2026, 0, 31, 23) / HOUR_MS;
const makeId = idMaker('', systemClock, systemRandom);

let store: TestRecords;
let history: PostgresUsageHistory;
let lastBatch = 0;
let lastSeen = 0;
beforeAll(async () => {
  store = await createPostgresRecords();
  history = new PostgresUsageHistory(store.records.db);
});
afterAll(() => store.remove());
afterEach(async () => {
  const { webhooks } = store.records;
  for (const { id } of await webhooks.list({ onlyTags: [], limit: 100 }))
    await webhooks.delete(id, sampleChange());
  await forgetStream();
  await timedUntil(0).run();
  await newEvents();
});

/** A webhook, whose id this resolves with; the rest of it does not matter here. */
async function hear(...events: readonly string[]): Promise<string> {
  return makeWebhook({ events, enabled: true });
}

async function makeWebhook(fields: Pick<StoredWebhook['webhook'], 'events' | 'enabled'>): Promise<string> {
  const id = idMaker('whk_', systemClock, systemRandom)();
  const webhook = {
    ...{ id, url: 'https://hooks.example.com/', onlyTags: [], description: '', ...fields },
    ...{ batch: true, headerNames: [], secretHint: '', previousValidUntilMs: null, disabledReason: null },
    ...{
      failingSinceMs: null,
      createdAtMs: 0,
      updatedAtMs: 0,
      version: 1,
      externalId: null,
      managedBy: null,
    },
  } satisfies StoredWebhook['webhook'];
  const sealed = { sealedSecret: Buffer.alloc(1), previousSealedSecret: null, sealedHeaders: null };
  await store.records.webhooks.insert({ webhook, ...sealed }, sampleChange());
  await newEvents();
  return id;
}

async function enable(webhookId: string, enabled: boolean, atMs = systemClock.nowMs()): Promise<void> {
  const edit = ({ webhook, ...sealed }: StoredWebhook) => ({ webhook: { ...webhook, enabled }, ...sealed });
  await store.records.webhooks.update(webhookId, { action: 'webhook.update', edit }, sampleChange({ atMs }));
}

/** As if all disabled webhooks were disabled so long ago. */
async function disabledAgo(ms: number): Promise<void> {
  const updated_at = new Date(systemClock.nowMs() - ms);
  await store.records.db.updateTable('webhooks').set({ updated_at }).where('enabled', '=', false).execute();
}

/** A stream of usage that has ended counts for 7 days. */
async function streamUsage(): Promise<void> {
  await new PostgresEventReader(store.records.db).follow(true);
}

async function forgetStream(): Promise<void> {
  await store.records.db.updateTable('audit_log_ends').set({ usage_streamed_until: null }).execute();
}

async function unsentRows(): Promise<number> {
  return (await sql`SELECT FROM usage_unsent`.execute(store.records.db)).rows.length;
}

function timedUntil(hour: number | undefined): TimedEvents {
  return new TimedEvents({
    store: new PostgresTimedEvents(store.records.db),
    usageCompleteUntilMs: async () => hour && hour * HOUR_MS,
    ...{ makeId, mask: withoutSecrets },
  });
}

/** The events of a type since the last call. */
async function newEvents(type = ''): Promise<readonly OutboxEvent[]> {
  const events = await eventsAfter(store.records.db, lastSeen);
  lastSeen = events.at(-1)?.sequence ?? lastSeen;
  return events.filter((event) => event.type.startsWith(type));
}

async function newKey(fields: Parameters<typeof sampleKey>[0] = {}): Promise<string> {
  return (await storeKey(store.records, fields)).id;
}

/** The customer who sent so many requests at once. */
const customerOf = (requests: number): string => `customer-${requests % 3}`;

/** Usage of a key, as a batch of the flusher. */
async function use(
  keyId: string,
  hours: Readonly<Record<number, number>>,
  unitsOfRequest = 3,
): Promise<void> {
  const slices = Object.entries(hours).map(([hour, requests]): UsageSlice => {
    const counts = {
      ...noCounts(),
      requests,
      successful: requests - 1,
      rateLimited: 1,
      units: unitsOfRequest * requests,
      ...{ bytesIn: 5, bytesOut: 7 },
    };
    return {
      ...{ keyId, day: Math.floor(Number(hour) / 24), planId: '', lastUsedAtS: 0 },
      hours: new Map([[Number(hour), counts]]),
      ...{ endpoints: new Map([['/', counts]]), customers: new Map([[customerOf(requests), counts]]) },
    };
  });
  lastBatch += 1;
  const batch = { shard: 3, source: 'test', id: lastBatch, slices, writers: new Map() };
  expect(await history.apply(batch)).toEqual({ kind: 'applied' });
}

interface UsageData {
  readonly consumerApiKeyId: string;
  readonly byCustomer: readonly { readonly customerId: string; readonly requests: number }[];
}

/** Requests by key and customer over all events, in order. */
function requestsByCustomer(events: readonly UsageData[]): readonly (readonly [string, number])[] {
  const sums = new Map<string, number>();
  for (const { consumerApiKeyId, byCustomer } of events) {
    for (const { customerId, requests } of byCustomer) {
      const name = `${consumerApiKeyId} ${customerId}`;
      sums.set(name, (sums.get(name) ?? 0) + requests);
    }
  }
  return [...sums].toSorted();
}

/** The same of usage over time. */
async function customersOverTime(keyIds: readonly string[]): Promise<readonly (readonly [string, number])[]> {
  const { rows } = await sql<{ name: string; requests: number }>`
    SELECT key_id || ' ' || name AS name, sum(requests)::bigint AS requests FROM usage_customer_days
    WHERE key_id = ANY (${keyIds}::text[]) GROUP BY 1`.execute(store.records.db);
  return rows.map(({ name, requests }) => [name, requests] as const).toSorted();
}

const dataOf = ({ data }: OutboxEvent) => JSON.parse(data);

describe('the usage of an hour', () => {
  it('is one event of each key once the hour is complete, and is a valid CloudEvent', async () => {
    await hear('tollgate.usage.*');
    const keyId = await newKey({ externalId: 'customer-1', tags: ['eu'] });
    await use(keyId, { [HOUR]: 4, [HOUR + 1]: 1 });
    await use(keyId, { [HOUR]: 6 });
    await timedUntil(undefined).run();
    await timedUntil(HOUR + 0.99).run();
    expect(await newEvents('tollgate.usage.')).toEqual([]);
    await timedUntil(HOUR + 1).run();
    const [event, ...others] = await newEvents('tollgate.usage.');
    if (event === undefined) throw new Error('there is no event');
    expect(others).toEqual([]);
    expect(event).toMatchObject({ id: `usage_${keyId}_2026-01-31T23`, subject: 'customer-1', tags: ['eu'] });
    expect(dataOf(event)).toEqual({
      consumerApiKeyId: keyId,
      ...{ from: '2026-01-31T23:00:00Z', to: '2026-02-01T00:00:00Z' },
      ...{ requests: 10, successful: 8, failed: 2, rateLimited: 2, units: 30, bytesIn: 10, bytesOut: 14 },
      byCustomer: [
        {
          ...{ customerId: 'customer-0', requests: 6, successful: 5, failed: 1, rateLimited: 1, units: 18 },
          ...{ bytesIn: 5, bytesOut: 7 },
        },
        {
          ...{ customerId: 'customer-1', requests: 4, successful: 3, failed: 1, rateLimited: 1, units: 12 },
          ...{ bytesIn: 5, bytesOut: 7 },
        },
      ],
    });
    const cloudEvent = HTTP.toEvent({
      headers: { 'content-type': 'application/cloudevents+json' },
      body: cloudEventText(event, '/tollgate'),
    }) as CloudEvent<object>;
    expect(cloudEvent.validate()).toBe(true);
    expect(cloudEvent.time).toBe('2026-01-31T23:00:00.000Z');
    const validate = new Ajv2020({ validateFormats: false }).compile(EVENT_TYPES['tollgate.usage.hour'].data);
    expect([validate(cloudEvent.data), validate.errors]).toEqual([true, null]);
  });

  it('has the externalId of its key as subject, also one that looks like a secret', async () => {
    await hear('tollgate.usage.hour');
    const externalId = `user_${'0123456789ab'.repeat(3)}`;
    await use(await newKey({ externalId }), { [HOUR]: 2 });
    await timedUntil(HOUR + 1).run();
    expect((await newEvents('tollgate.usage.')).map(({ subject }) => subject)).toEqual([externalId]);
  });

  it('of a key that was deleted meanwhile has its externalId and its tags', async () => {
    await hear('*');
    const keyId = await newKey({ externalId: 'customer-2', tags: ['us'] });
    await use(keyId, { [HOUR]: 2 });
    await deleteKey(store.records.keys, keyId, sampleChange());
    await use(keyId, { [HOUR]: 3 });
    await timedUntil(HOUR + 1).run();
    const [event] = await newEvents('tollgate.usage.');
    expect(event).toMatchObject({ subject: 'customer-2', tags: ['us'] });
    expect(event && dataOf(event)).toMatchObject({ consumerApiKeyId: keyId, requests: 5 });
  });

  it('that came too late is another event with nothing but what was added', async () => {
    await hear('tollgate.usage.hour');
    const keyId = await newKey();
    const hour = HOUR + 2;
    await use(keyId, { [hour]: 2 });
    await timedUntil(hour + 1).run();
    await use(keyId, { [hour]: 5 });
    await timedUntil(hour + 1).run();
    const events = await newEvents('tollgate.usage.');
    expect(events.map((event) => dataOf(event).requests)).toEqual([2, 5]);
    expect(events[1]?.id).toMatch(new RegExp(`^${events[0]?.id}_[0-9A-Z]{26}$`));
  });

  it('is kept nowhere while nothing hears usage, and is forgotten when nothing does any more', async () => {
    await makeWebhook({ events: ['tollgate.usage.hour'], enabled: false });
    await hear('tollgate.key.*');
    const keyId = await newKey();
    await use(keyId, { [HOUR]: 2 });
    expect(await unsentRows()).toBe(0);
    await streamUsage();
    await use(keyId, { [HOUR]: 2 });
    expect(await unsentRows()).toBe(1);
    await forgetStream();
    await timedUntil(0).run();
    expect(await unsentRows()).toBe(0);
  });

  it('waits for its webhook while that is disabled, with what is added meanwhile', async () => {
    const webhookId = await hear('tollgate.usage.hour');
    const keyId = await newKey({ externalId: 'customer-3' });
    await use(keyId, { [HOUR]: 2, [HOUR + 1]: 3 });
    await enable(webhookId, false);
    await timedUntil(HOUR + 1).run();
    await use(keyId, { [HOUR]: 5 });
    await deleteKey(store.records.keys, keyId, sampleChange());
    await timedUntil(HOUR + 1).run();
    await enable(webhookId, true);
    await timedUntil(HOUR + 2).run();
    const events = await newEvents('tollgate.usage.');
    expect(events.map((event) => [event.subject, dataOf(event).requests])).toEqual([
      ['customer-3', 7],
      ['customer-3', 3],
    ]);
  });

  it('waits for its disabled webhook although a stream that has ended heard usage', async () => {
    const webhookId = await hear('tollgate.usage.hour');
    await streamUsage();
    const keyId = await newKey();
    await use(keyId, { [HOUR]: 2 });
    await enable(webhookId, false);
    await timedUntil(HOUR + 1).run();
    expect(await newEvents('tollgate.usage.')).toEqual([]);
    await use(keyId, { [HOUR]: 5 });
    await enable(webhookId, true);
    await timedUntil(HOUR + 1).run();
    expect((await newEvents('tollgate.usage.')).map((event) => dataOf(event).requests)).toEqual([7]);
  });

  it('goes to streams once its webhook has been disabled for 3 days', async () => {
    const webhookId = await hear('tollgate.usage.hour');
    await streamUsage();
    await use(await newKey(), { [HOUR]: 2 });
    await enable(webhookId, false);
    await disabledAgo(3 * DAY_MS - HOUR_MS);
    await timedUntil(HOUR + 1).run();
    expect(await newEvents('tollgate.usage.')).toEqual([]);
    await disabledAgo(3 * DAY_MS);
    await timedUntil(HOUR + 1).run();
    expect((await newEvents('tollgate.usage.')).map((event) => dataOf(event).requests)).toEqual([2]);
  });

  it('stays for its webhook when that is disabled just before the events are made', async () => {
    await hear('tollgate.key.*');
    const webhookId = await hear('tollgate.usage.hour');
    const keyId = await newKey();
    await use(keyId, { [HOUR]: 2 });
    await enable(webhookId, false);
    // As by a replica that found it enabled just before.
    const makeNone = () => [];
    expect(await new PostgresTimedEvents(store.records.db).passUsage((HOUR + 1) * HOUR_MS, makeNone)).toBe(
      false,
    );
    await enable(webhookId, true);
    await timedUntil(HOUR + 1).run();
    expect((await newEvents('tollgate.usage.')).map((event) => dataOf(event).requests)).toEqual([2]);
  });

  it('is forgotten once its webhook has been disabled for 3 days', async () => {
    const webhookId = await hear('tollgate.usage.hour');
    const keyId = await newKey();
    await use(keyId, { [HOUR]: 2 });
    await enable(webhookId, false);
    await disabledAgo(3 * DAY_MS - HOUR_MS);
    await timedUntil(0).run();
    expect(await unsentRows()).toBe(1);
    await disabledAgo(3 * DAY_MS);
    await timedUntil(0).run();
    await use(keyId, { [HOUR]: 2 });
    expect(await unsentRows()).toBe(0);
  });

  it('is forgotten in several runs where there is much', async () => {
    await sql`
      INSERT INTO usage_unsent (hour, key_id, requests, successful, rate_limited, units, bytes_in, bytes_out)
      SELECT 'epoch', 'key_' || n, 1, 1, 0, 1, 0, 0 FROM generate_series(1, 12000) AS n`.execute(
      store.records.db,
    );
    expect(await timedUntil(0).run()).toBe('more');
    expect(await unsentRows()).toBe(2000);
    expect(await timedUntil(0).run()).not.toBe('more');
    expect(await unsentRows()).toBe(0);
  });

  it('is not forgotten once it is heard again', async () => {
    await hear('tollgate.usage.*');
    const keyId = await newKey();
    await use(keyId, { [HOUR]: 2 });
    // As by a replica that found that nothing hears usage just before.
    await new PostgresTimedEvents(store.records.db).forgetUsage();
    await timedUntil(HOUR + 1).run();
    expect((await newEvents('tollgate.usage.')).map((event) => dataOf(event).requests)).toEqual([2]);
  });

  it('has the highest exact sum where a backend reports more', async () => {
    await hear('tollgate.usage.*');
    const keyId = await newKey();
    for (let batch = 0; batch < 3; batch += 1) await use(keyId, { [HOUR]: 9 }, 1e18);
    await timedUntil(HOUR + 1).run();
    const [event] = await newEvents('tollgate.usage.');
    expect(event && dataOf(event)).toMatchObject({ requests: 27, units: Number.MAX_SAFE_INTEGER });
  });

  it('is, over all events of a key, its usage over time, whatever comes late or twice', async () => {
    await hear('tollgate.usage.hour');
    const { db } = store.records;
    let start = HOUR;
    const step = fc.oneof(
      fc.record({ key: fc.nat(4), hour: fc.nat(5), requests: fc.integer({ min: 1, max: 9 }) }),
      fc.record({ until: fc.nat(7) }),
      fc.record({ deleted: fc.nat(4) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
        // Later than the hours of which there were events.
        start += 100;
        const keyIds = await Promise.all(Array.from({ length: 5 }, () => newKey()));
        await newEvents('tollgate.usage.');
        for (const each of steps) {
          // Clocks may go back: an hour that was complete may not be.
          if ('until' in each) {
            const both = [timedUntil(start + each.until), timedUntil(start + each.until)];
            await Promise.all(both.map((timed) => timed.run()));
          } else if ('deleted' in each)
            await deleteKey(store.records.keys, keyIds[each.deleted] ?? '', sampleChange());
          else await use(keyIds[each.key] ?? '', { [start + each.hour]: each.requests });
        }
        await timedUntil(start + 8).run();
        const events = (await newEvents('tollgate.usage.')).map((event) => ({ ...event, ...dataOf(event) }));
        expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
        const sums = Object.entries(
          Object.groupBy(events, ({ consumerApiKeyId, from }) => `${consumerApiKeyId} ${from}`),
        );
        const { rows } = await sql<{ name: string; requests: number; bytes_out: number }>`
          SELECT key_id || ' ' || to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS name,
            sum(requests)::bigint AS requests, sum(bytes_out)::bigint AS bytes_out
          FROM usage_hours WHERE key_id = ANY (${keyIds}::text[]) GROUP BY 1`.execute(db);
        expect(requestsByCustomer(events)).toEqual(await customersOverTime(keyIds));
        const sum = (list: typeof events, field: 'requests' | 'bytesOut' | 'units'): number =>
          list.reduce((total, event) => total + event[field], 0);
        expect(
          sums
            .map(([name, list = []]) => [
              name,
              sum(list, 'requests'),
              sum(list, 'bytesOut'),
              sum(list, 'units'),
            ])
            .toSorted(),
        ).toEqual(
          rows.map(({ name, requests, bytes_out }) => [name, requests, bytes_out, 3 * requests]).toSorted(),
        );
      }),
      { numRuns: 8 },
    );
  });

  it('names the hundred busiest customers, and the rest in one sum with what is known of no customer', async () => {
    await hear('tollgate.usage.hour');
    const keyId = await newKey();
    const one = (requests: number) => ({ ...noCounts(), requests, successful: requests, units: requests });
    const hour = HOUR + 4000;
    const slice = { keyId, day: Math.floor(hour / 24), planId: '', lastUsedAtS: 0, endpoints: new Map() };
    // More customers than a key has room for, all in one hour, and then counts of which no hour is known.
    const customers = new Map(Array.from({ length: 1100 }, (_, n) => [`c${n}`, one(1 + (n % 1000))]));
    const all = [...customers.values()].reduce((sum, { requests }) => sum + requests, 0);
    const slices = [
      { ...slice, hours: new Map([[hour, one(all)]]), customers },
      {
        ...slice,
        hours: new Map([
          [hour, one(7)],
          [hour + 1, one(5)],
        ]),
        customers: new Map([['c0', one(12)]]),
      },
    ];
    lastBatch += 1;
    await history.apply({ shard: 3, source: 'test', id: lastBatch, slices, writers: new Map() });
    await timedUntil(hour + 2).run();
    const events = (await newEvents('tollgate.usage.')).map(dataOf);
    expect(events.map(({ requests }) => requests)).toEqual([all + 7, 5]);
    const [{ byCustomer }, later] = events;
    expect(byCustomer).toHaveLength(101);
    expect(byCustomer[0]).toMatchObject({ customerId: 'c999', requests: 1000 });
    const named = Array.from({ length: 100 }, (_, n) => 1000 - n).reduce((sum, n) => sum + n, 0);
    expect(byCustomer[100]).toMatchObject({ customerId: '__other__', requests: all + 7 - named });
    expect(later.byCustomer).toMatchObject([{ customerId: '__other__', requests: 5 }]);
    const { rows } = await sql`SELECT FROM usage_unsent_customers`.execute(store.records.db);
    expect(rows).toEqual([]);
  });

  it('is made page by page for more keys than a page has', async () => {
    await hear('tollgate.usage.hour');
    const { db } = store.records;
    await sql`
      INSERT INTO usage_unsent (hour, key_id, requests, successful, rate_limited, units, bytes_in, bytes_out)
      SELECT ${new Date((HOUR + 5000) * HOUR_MS)}, 'key_' || n, 1, 1, 0, 1, 0, 0 FROM generate_series(1, 1203) AS n`.execute(
      db,
    );
    await timedUntil(HOUR + 5001).run();
    const ids = (await newEvents('tollgate.usage.')).map(({ id }) => id);
    expect([ids.length, new Set(ids).size]).toEqual([1203, 1203]);
  });
});

describe('a key that expires', () => {
  const NOW_MS = systemClock.nowMs();
  const kindOf = ({ id }: OutboxEvent) => id.replace(/^key_[^_]*_/, '').replace(/_\d+$/, '');

  async function expiring(inMs: number): Promise<string> {
    return newKey({ expiresAtMs: NOW_MS + inMs, externalId: `expiring-${inMs}` });
  }

  /** As if the last look was so long ago. */
  async function lastLook(agoMs: number): Promise<void> {
    await timedUntil(0).run();
    await store.records.db
      .updateTable('key_expiry_progress')
      .set({ at: new Date(NOW_MS - agoMs), key_id: '' })
      .execute();
  }

  it('is announced 7 days and 1 day before, and when it has expired, once each over all replicas', async () => {
    await hear('tollgate.key.*');
    const keyIds = [
      await expiring(-HOUR_MS),
      await expiring(DAY_MS - HOUR_MS),
      await expiring(7 * DAY_MS - HOUR_MS),
    ];
    await expiring(2 * DAY_MS);
    await expiring(8 * DAY_MS);
    await lastLook(2 * HOUR_MS);
    await newEvents();
    await Promise.all([timedUntil(0), timedUntil(0)].map((timed) => timed.run()));
    await timedUntil(0).run();
    const events = await newEvents();
    expect(events.map((event) => [event.subject, kindOf(event), event.type]).toSorted()).toEqual(
      [
        [keyIds[0], 'expired', 'tollgate.key.expired'],
        [keyIds[1], 'expiring_1d', 'tollgate.key.expiring'],
        [keyIds[2], 'expiring_7d', 'tollgate.key.expiring'],
      ].toSorted(),
    );
    const validate = new Ajv2020({ validateFormats: false }).compile(
      EVENT_TYPES['tollgate.key.expiring'].data,
    );
    for (const event of events) expect([validate(dataOf(event)), validate.errors]).toEqual([true, null]);
  });

  it('whose name, owner and tag hold a secret has it in none of its events', async () => {
    await hear('*');
    const secret = createSecret('tg', systemRandom);
    const fields = { name: `paste ${secret}`, externalId: secret, tags: [secret] };
    const keyId = await newKey({ ...fields, expiresAtMs: NOW_MS + DAY_MS - HOUR_MS });
    await use(keyId, { [HOUR]: 2 });
    await lastLook(2 * HOUR_MS);
    await timedUntil(HOUR + 1).run();
    const events = (await newEvents()).filter(({ subject }) => [keyId, secret].includes(subject));
    expect(events.map(({ type }) => type).toSorted()).toEqual([
      'tollgate.key.created',
      'tollgate.key.expiring',
      'tollgate.usage.hour',
    ]);
    const leaking = events.filter((event) => cloudEventText(event, '/tollgate').includes(secret));
    expect(leaking.map(({ type }) => type)).toEqual([]);
    const { data } = events.find(({ type }) => type === 'tollgate.key.expiring') ?? { data: '{}' };
    expect(JSON.parse(data)).toMatchObject({ name: 'paste ***', externalId: '***', tags: ['***'] });
  });

  it('whose expiry is moved is announced again before the new one', async () => {
    await hear('tollgate.key.*');
    const keyId = await expiring(DAY_MS - HOUR_MS);
    const isOfKey = ({ subject }: OutboxEvent) => subject === keyId;
    await lastLook(2 * HOUR_MS);
    await newEvents();
    await timedUntil(0).run();
    const moveTo = (expiresAtMs: number) =>
      store.records.db
        .updateTable('consumer_keys')
        .set({ expires_at: new Date(expiresAtMs) })
        .where('id', '=', keyId)
        .execute();
    await moveTo(NOW_MS + 5 * DAY_MS);
    await timedUntil(0).run();
    expect((await newEvents()).filter(isOfKey).map(kindOf)).toEqual(['expiring_1d']);
    await lastLook(0);
    await moveTo(NOW_MS + DAY_MS - 2 * HOUR_MS);
    await lastLook(3 * HOUR_MS);
    await timedUntil(0).run();
    const [event] = (await newEvents()).filter(isOfKey);
    expect(event?.id).toBe(`${keyId}_expiring_1d_${NOW_MS + DAY_MS - 2 * HOUR_MS}`);
  });

  it('is announced for each of many keys with the same expiry', async () => {
    await hear('tollgate.key.*');
    const keys = Array.from({ length: 3 }, () => sampleKey({ expiresAtMs: NOW_MS - HOUR_MS }));
    for (const key of keys) await store.records.keys.insert(key, sampleChange());
    await sql`UPDATE consumer_keys SET expires_at = ${new Date(NOW_MS - HOUR_MS)}`.execute(store.records.db);
    await lastLook(2 * HOUR_MS);
    await newEvents();
    await timedUntil(0).run();
    const events = await newEvents();
    const { total } = await store.records.db
      .selectFrom('consumer_keys')
      .select(({ fn }) => fn.countAll<number>().as('total'))
      .executeTakeFirstOrThrow();
    expect(events.length).toBe(total);
  });

  it('is announced wherever in its millisecond the keys before it were looked at', async () => {
    await hear('tollgate.key.*');
    const { db } = store.records;
    const timed = new PostgresTimedEvents(db);
    const notice = { name: 'expired', type: 'tollgate.key.expired', beforeMs: 0 } as const;
    const keys = Array.from({ length: 200 }, () => sampleKey());
    const keyIds = keys.map(({ id }) => id);
    await storeKeys(store.records, keys);
    await timed.passExpiries(notice, () => []);
    // One is due in each millisecond from soon on: 15 s after it has expired.
    await sql`
      UPDATE consumer_keys SET expires_at = date_trunc('milliseconds', now()) + (number - 14980) * interval '1 ms'
      FROM unnest(${keyIds}::text[]) WITH ORDINALITY AS key (key_id, number) WHERE id = key_id`.execute(db);
    const announced: string[] = [];
    const arePassed = async () => {
      await timed.passExpiries(notice, (expired) => {
        announced.push(...expired.map(({ keyId }) => keyId));
        return [];
      });
      const { rows } = await sql`
        SELECT FROM consumer_keys, key_expiry_progress
        WHERE kind = ${notice.name} AND expires_at >= at AND id = ANY (${keyIds}::text[])`.execute(db);
      return rows.length === 0;
    };
    await until(arePassed);
    expect(announced.toSorted()).toEqual(keyIds.toSorted());
  });

  it('is not forgotten once a stream hears of it', async () => {
    const timed = new PostgresTimedEvents(store.records.db);
    await new PostgresEventReader(store.records.db).follow(false);
    await timedUntil(0).run();
    const positions = () => store.records.db.selectFrom('key_expiry_progress').select('kind').execute();
    const before = await positions();
    // As by a replica that found that nothing is heard just before.
    await timed.forgetExpiries();
    expect(await positions()).toEqual(before);
    expect(before.length).toBeGreaterThan(0);
    await store.records.db.updateTable('audit_log_ends').set({ streamed_until: null }).execute();
    await timed.forgetExpiries();
    expect(await positions()).toEqual([]);
  });

  it('is not announced to a webhook that was made later', async () => {
    await expiring(-HOUR_MS);
    await timedUntil(0).run();
    await hear('tollgate.key.*');
    await timedUntil(0).run();
    expect(await newEvents()).toEqual([]);
  });
});
