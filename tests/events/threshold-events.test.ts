import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { pino } from 'pino';
import { EVENT_TYPES } from '../../src/events/event-types.ts';
import { type KeyEvent, type KeyOutbox, ThresholdEvents } from '../../src/events/threshold-events.ts';
import type { StoredWebhook } from '../../src/events/webhook.ts';
import type { PassedThreshold } from '../../src/limiter/window-counters.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { idMaker } from '../../src/platform/id-maker.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { PostgresKeyOutbox } from '../../src/storage/postgres/events/key-outbox.ts';
import { PostgresEventReader } from '../../src/storage/postgres/events/postgres-event-reader.ts';
import { quota } from '../support/limiter-stores.ts';
import { createPostgresRecords, type TestRecords } from '../support/records.ts';
import { sampleChange, storeKey } from '../support/sample-records.ts';
import { until } from '../support/until.ts';
import { eventsAfter } from './support/events-after.ts';

const TYPE = 'tollgate.limit.threshold';
const makeId = idMaker('', systemClock, systemRandom);

let store: TestRecords;
let outbox: PostgresKeyOutbox;
beforeAll(async () => {
  store = await createPostgresRecords();
  outbox = new PostgresKeyOutbox(store.records.db);
});
afterAll(() => store.remove());
afterEach(() => {
  jest.useRealTimers();
});
beforeEach(async () => {
  const { webhooks } = store.records;
  for (const { id } of await webhooks.list({ onlyTags: [], limit: 100 }))
    await webhooks.delete(id, sampleChange());
  await store.records.db.updateTable('audit_log_ends').set({ streamed_until: null }).execute();
  await store.records.db.deleteFrom('events').execute();
});

/** A webhook; the rest of it does not matter here. */
async function hear(...events: readonly string[]): Promise<void> {
  const webhook = {
    ...{ id: idMaker('whk_', systemClock, systemRandom)(), url: 'https://hooks.example.com/', events },
    ...{ onlyTags: [], description: '', enabled: true, batch: false, headerNames: [], secretHint: '' },
    ...{ previousValidUntilMs: null, disabledReason: null, failingSinceMs: null, externalId: null },
    ...{ managedBy: null, createdAtMs: 0, updatedAtMs: 0, version: 1 },
  } satisfies StoredWebhook['webhook'];
  const sealed = { sealedSecret: Buffer.alloc(1), previousSealedSecret: null, sealedHeaders: null };
  await store.records.webhooks.insert({ webhook, ...sealed }, sampleChange());
}

async function newKey(tags: readonly string[] = []): Promise<string> {
  return (await storeKey(store.records, { tags })).id;
}

const passed = (keyId: string, fields: Partial<PassedThreshold> = {}): PassedThreshold => ({
  ...{ keyId, limit: quota(10, 'hour'), customerId: undefined, threshold: 80, quota: 10, used: 8 },
  ...{ resetAtMs: Date.UTC(2026, 1, 4, 11) + 1, atMs: Date.UTC(2026, 1, 4, 10) },
  ...fields,
});

const unmasked = (text: string) => text;

const eventsOver = (to: KeyOutbox) =>
  new ThresholdEvents({ outbox: to, makeId, mask: unmasked, log: pino({ level: 'silent' }) });

async function written() {
  return eventsAfter(store.records.db, 0, { events: [TYPE], subject: undefined });
}

describe('events of thresholds', () => {
  it('have the present tags of their keys, and data of the published form', async () => {
    await hear('tollgate.limit.*');
    const keyId = await newKey(['eu', 'gold']);
    const events = eventsOver(outbox);
    events.add(passed(keyId));
    events.add(passed(keyId, { customerId: 'acme', threshold: 100, used: 12 }));
    events.add(passed('key_deleted'));
    await until(async () => (await written()).length === 3);
    const [first, second, third] = await written();
    expect(first).toMatchObject({ subject: keyId, tags: ['eu', 'gold'], atMs: Date.UTC(2026, 1, 4, 10) });
    expect(JSON.parse(first?.data ?? '')).toEqual({
      ...{ limitId: 'main', threshold: 80, limit: 10, used: 8, resetTime: '2026-02-04T11:00:01Z' },
    });
    const data = JSON.parse(second?.data ?? '');
    expect(data).toMatchObject({ threshold: 100, used: 12, customerId: 'acme' });
    expect(third).toMatchObject({ subject: 'key_deleted', tags: [] });
    const validate = new Ajv2020({ validateFormats: false }).compile(EVENT_TYPES[TYPE].data);
    expect([validate(data), validate.errors]).toEqual([true, null]);
    await events.stop();
  });

  it('are written only while a webhook hears them, or a stream was open', async () => {
    await hear('tollgate.key.*', 'tollgate.limit.reset');
    const event: KeyEvent = { id: 'one', type: TYPE, subject: await newKey(), atMs: 0, data: '{}' };
    await outbox.append(TYPE, [event]);
    await outbox.appendMissing(TYPE, [event]);
    expect(await written()).toEqual([]);
    await new PostgresEventReader(store.records.db).follow(false);
    await outbox.append(TYPE, [event]);
    expect((await written()).map(({ id }) => id)).toEqual(['one']);
  });

  it('are written once when it is not known whether Postgres has written them', async () => {
    await hear('*');
    const keyId = await newKey();
    let calls = 0;
    // As when the connection breaks after the commit: once after it, once before.
    const losing: KeyOutbox = {
      append: async (type, events) => {
        await outbox.append(type, events.slice(0, 1));
        throw new Error('the connection is lost');
      },
      appendMissing: async (type, events) => {
        calls += 1;
        if (calls === 1) throw new Error('there is no connection');
        await outbox.appendMissing(type, events);
      },
    };
    const events = eventsOver(losing);
    events.add(passed(keyId));
    events.add(passed(keyId, { threshold: 100 }));
    await until(async () => (await written()).length === 2, { longestPauseMs: 200 });
    await events.stop();
    expect((await written()).map(({ data }) => JSON.parse(data).threshold)).toEqual([80, 100]);
    expect(new Set((await written()).map(({ id }) => id)).size).toBe(2);
    expect(events.dropped).toBe(0);
  });

  it('wait in bounded memory, are written when the process stops, and are counted if they can not be', async () => {
    const sizes: number[] = [];
    let isAway = false;
    const append = async (_type: string, { length }: readonly KeyEvent[]): Promise<void> => {
      if (isAway) throw new Error('Postgres is away');
      sizes.push(length);
    };
    const events = eventsOver({ append, appendMissing: append });
    for (let each = 0; each < 10_007; each += 1) events.add(passed('key_1'));
    expect(events.dropped).toBe(7);
    await events.stop();
    expect(sizes).toEqual(Array.from({ length: 20 }, () => 500));
    events.add(passed('key_1'));
    expect(events.dropped).toBe(8);

    isAway = true;
    const others = eventsOver({ append, appendMissing: append });
    for (let each = 0; each < 3; each += 1) others.add(passed('key_1'));
    await others.stop();
    expect(others.dropped).toBe(3);
  });

  it('are not tried a second time at the stop where the store has just not taken them', async () => {
    const attempt = Promise.withResolvers<void>();
    const append = jest.fn(() => attempt.promise);
    const events = eventsOver({ append, appendMissing: append });
    events.add(passed('key_1'));
    await until(() => append.mock.calls.length === 1);
    const stopped = events.stop();
    attempt.reject(new Error('no response'));
    await stopped;
    expect(append).toHaveBeenCalledTimes(1);
  });

  it('are written together after a quarter of a second, one batch at a time', async () => {
    jest.useFakeTimers();
    const sizes: number[] = [];
    let writing: Promise<void> | undefined;
    const append = async (_type: string, { length }: readonly KeyEvent[]): Promise<void> => {
      sizes.push(length);
      await writing;
    };
    const events = eventsOver({ append, appendMissing: append });
    const first = Promise.withResolvers<void>();
    writing = first.promise;
    events.add(passed('key_1'));
    await jest.advanceTimersByTimeAsync(200);
    events.add(passed('key_2'));
    await jest.advanceTimersByTimeAsync(49);
    expect(sizes).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    expect(sizes).toEqual([2]);
    for (let each = 0; each < 3; each += 1) events.add(passed('key_1'));
    await jest.advanceTimersByTimeAsync(10_000);
    expect(sizes).toEqual([2]);
    first.resolve();
    await jest.advanceTimersByTimeAsync(1);
    expect(sizes).toEqual([2, 3]);
    await jest.advanceTimersByTimeAsync(10_000);
    expect(sizes).toEqual([2, 3]);
    await events.stop();
  });

  it('are tried again every two seconds, with one line in the log of each outage', async () => {
    jest.useFakeTimers();
    let isAway = true;
    let calls = 0;
    const append = async (): Promise<void> => {
      calls += 1;
      if (isAway) throw new Error('Postgres is away');
    };
    const lines: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line) => void lines.push(line) });
    const events = new ThresholdEvents({
      ...{ outbox: { append, appendMissing: append }, makeId, mask: unmasked, log },
    });
    for (const outages of [1, 2]) {
      [isAway, calls] = [true, 0];
      events.add(passed('key_1'));
      await jest.advanceTimersByTimeAsync(250);
      await jest.advanceTimersByTimeAsync(1999);
      expect(calls).toBe(1);
      await jest.advanceTimersByTimeAsync(1);
      expect([calls, lines.length]).toEqual([2, outages]);
      isAway = false;
      await jest.advanceTimersByTimeAsync(2000);
      await jest.advanceTimersByTimeAsync(10_000);
      expect(calls).toBe(3);
    }
    await events.stop();
    expect(events.dropped).toBe(0);
  });
});
