import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { DegradationEvents } from '../../src/events/degradation-events.ts';
import type { OutboxEvent } from '../../src/events/outbox-event.ts';
import { ManualClock } from '../support/manual-clock.ts';

const START_MS = Date.UTC(2026, 1, 4, 10);
const DEGRADED = 'tollgate.gateway.degraded';
const RECOVERED = 'tollgate.gateway.recovered';

let clock: ManualClock;
let events: DegradationEvents;
/** What the outbox holds. */
let stored: OutboxEvent[];
/** The calls of the outbox, each with its events. */
let calls: (readonly OutboxEvent[])[];
/** What each call does. */
let append: () => Promise<void>;

beforeEach(() => {
  jest.useFakeTimers();
  clock = new ManualClock(START_MS);
  calls = [];
  stored = [];
  append = async () => {};
  const ids = Array.from({ length: 100 }, (_, before) => String(before + 1)).values();
  events = new DegradationEvents({
    outbox: {
      append: (written) => {
        calls.push(written);
        stored.push(...written);
        return append();
      },
      appendMissing: (written) => {
        calls.push(written);
        stored.push(...written.filter(({ id }) => !stored.some((event) => event.id === id)));
        return append();
      },
    },
    clock,
    makeId: () => ids.next().value ?? '',
    replicaId: 'replica-1',
    mode: 'local',
  });
});
afterEach(() => {
  jest.useRealTimers();
});

async function pass(ms: number): Promise<void> {
  clock.advance(ms);
  await jest.advanceTimersByTimeAsync(ms);
}

/** Redis is away for a second, and back for long enough. */
async function disturb(): Promise<void> {
  events.begin();
  await pass(1000);
  events.end();
  await pass(10_000);
}

const idsOf = (written: readonly OutboxEvent[] | undefined) => written?.map(({ id }) => Number(id));

describe('a replica that decides without Redis', () => {
  it('says so once, and once that Redis has decided again for ten seconds', async () => {
    events.begin();
    events.begin();
    await pass(3000);
    events.end();
    await pass(4000);
    events.end();
    await pass(5999);
    expect(calls.flat().map(({ type }) => type)).toEqual([DEGRADED]);
    await pass(1);
    const data = JSON.stringify({ since: '2026-02-04T10:00:00Z', mode: 'local' });
    const common = { subject: 'replica-1', tags: [], data };
    expect(calls.flat()).toEqual([
      { ...common, id: '1', type: DEGRADED, atMs: START_MS },
      { ...common, id: '2', type: RECOVERED, atMs: START_MS + 3000 },
    ]);
    events.end();
    await pass(20_000);
    expect(calls).toHaveLength(2);
    await disturb();
    expect(calls.flat().map(({ type }) => type)).toEqual([DEGRADED, RECOVERED, DEGRADED, RECOVERED]);
  });

  it('has not recovered while Redis comes and goes', async () => {
    for (let time = 0; time < 3; time += 1) {
      events.begin();
      await pass(1000);
      events.end();
      await pass(9000);
    }
    expect(calls.flat().map(({ type }) => type)).toEqual([DEGRADED]);
    await pass(1000);
    expect(calls.flat()[1]).toMatchObject({ type: RECOVERED, atMs: START_MS + 21_000 });
  });

  it('writes one batch at a time, and what came meanwhile after it', async () => {
    const first = Promise.withResolvers<void>();
    append = () => first.promise;
    await disturb();
    events.begin();
    append = async () => {};
    expect(calls.map(idsOf)).toEqual([[1]]);
    first.resolve();
    await pass(0);
    expect(calls.map(idsOf)).toEqual([[1], [2, 3]]);
  });

  it('tries again five seconds after the last failure, until the events are written', async () => {
    append = () => Promise.reject(new Error('Postgres is away'));
    events.begin();
    await pass(1000);
    events.end();
    await pass(9000);
    expect(calls.map(idsOf)).toEqual([[1], [1], [1]]);
    // The recovery, one second after the last attempt, is an attempt in place of the next one.
    await pass(1000);
    await pass(4999);
    expect(calls.slice(3).map(idsOf)).toEqual([[1, 2]]);
    append = async () => {};
    await pass(1);
    await pass(60_000);
    expect(calls.slice(3).map(idsOf)).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });

  it('writes no event twice, although the reply to a write is lost', async () => {
    append = async () => {
      append = async () => {};
      throw new Error('the reply is lost');
    };
    await disturb();
    expect(calls.map(idsOf)).toEqual([[1], [1], [2]]);
    expect(idsOf(stored)).toEqual([1, 2]);
    await disturb();
    expect(idsOf(stored)).toEqual([1, 2, 3, 4]);
  });

  it('keeps twenty events while Postgres is away, the last one among them', async () => {
    append = () => Promise.reject(new Error('Postgres is away'));
    for (let time = 0; time < 15; time += 1) await disturb();
    events.begin();
    append = async () => {};
    await pass(5000);
    const written = calls.at(-1) ?? [];
    expect(idsOf(written)).toEqual([...Array.from({ length: 18 }, (_, before) => before + 1), 31]);
    expect(written.at(-1)).toMatchObject({ type: DEGRADED });
  });

  it('loses none that comes while twenty are being written', async () => {
    append = () => Promise.reject(new Error('Postgres is away'));
    for (let time = 0; time < 10; time += 1) await disturb();
    const writing = Promise.withResolvers<void>();
    append = () => writing.promise;
    await pass(5000);
    expect(calls.at(-1)).toHaveLength(20);
    events.begin();
    append = async () => {};
    writing.resolve();
    await pass(0);
    expect(calls.at(-1)?.map(({ id, type }) => [id, type])).toEqual([['21', DEGRADED]]);
  });

  it('makes and writes nothing once it was stopped, after what is being written', async () => {
    const writing = Promise.withResolvers<void>();
    append = () => writing.promise;
    await disturb();
    let isStopped = false;
    const stopped = events.stop().then(() => {
      isStopped = true;
    });
    await pass(0);
    expect(isStopped).toBe(false);
    writing.resolve();
    await stopped;
    events.begin();
    events.end();
    await pass(60_000);
    expect(calls.map(idsOf)).toEqual([[1]]);
  });

  it('tries no longer, and does not recover, once it was stopped', async () => {
    append = () => Promise.reject(new Error('Postgres is away'));
    events.begin();
    await pass(0);
    events.end();
    await events.stop();
    expect(jest.getTimerCount()).toBe(0);
    await pass(60_000);
    expect(calls.map(idsOf)).toEqual([[1]]);
  });
});
