import { describe, expect, it } from '@jest/globals';
import { StoreUnavailable } from '../../src/errors.ts';
import {
  type EventPage,
  EventStreams,
  type NumberedEvent,
  type StreamRequest,
} from '../../src/events/stream/event-streams.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';

const REQUEST: StreamRequest = {
  ...{ client: 'a client', events: ['*'], onlyTags: [], subject: undefined, afterSequence: 0 },
  isAllowed: async () => true,
};
const LAST_EVENT = 1000;

/** An outbox that counts how it is read. */
class CountedOutbox {
  follows = 0;
  reads = 0;
  mostReadsAtOnce = 0;
  #readsNow = 0;

  async follow() {
    this.follows += 1;
    return { lastEvent: LAST_EVENT, isNoted: this.follows === 1 };
  }

  async after(sequence: number): Promise<EventPage> {
    this.reads += 1;
    this.#readsNow += 1;
    this.mostReadsAtOnce = Math.max(this.mostReadsAtOnce, this.#readsNow);
    await new Promise(setImmediate);
    this.#readsNow -= 1;
    const length = Math.min(100, LAST_EVENT - sequence);
    const events = Array.from({ length }, (_, index) => eventOf(sequence + index + 1));
    return { events, position: sequence + length, isEnd: sequence + length === LAST_EVENT };
  }
}

function eventOf(sequence: number): NumberedEvent {
  const about = { type: 'tollgate.key.created', subject: 'a key', tags: [] } as const;
  return { sequence, id: `event ${sequence}`, atMs: 0, data: '{}', ...about };
}

function streamsOf(reader: CountedOutbox, clock = new ManualClock(0)) {
  const woken = { times: 0 };
  const wake = () => {
    woken.times += 1;
  };
  return { woken, streams: new EventStreams({ reader, source: '/test', clock, wake }) };
}

/** Reads chunks until the last event has come. */
async function readAll(chunks: AsyncIterable<string>): Promise<readonly string[]> {
  const read: string[] = [];
  for await (const chunk of chunks) {
    read.push(chunk);
    if (chunk.startsWith(`id: ${LAST_EVENT}\n`)) break;
  }
  return read;
}

describe('streams', () => {
  it('that are opened at once are 16 of a client at most, and others read nothing', async () => {
    const outbox = new CountedOutbox();
    const { streams } = streamsOf(outbox);
    const opened = await Promise.allSettled(Array.from({ length: 100 }, () => streams.open(REQUEST)));
    expect(opened.filter(({ status }) => status === 'fulfilled')).toHaveLength(16);
    expect(outbox.follows).toBe(16);
  });

  it('are 64 of a process at most, and a further one is overloaded until one has ended', async () => {
    const { streams } = streamsOf(new CountedOutbox());
    const open = (number: number) => streams.open({ ...REQUEST, client: `client ${number % 5}` });
    const opened = await Promise.all(Array.from({ length: 64 }, (_, number) => open(number)));
    await expect(open(64)).rejects.toMatchObject({ code: 'overloaded' });
    await opened[0]?.[Symbol.asyncIterator]().return?.();
    await open(64);
  });

  it('opened and ended in a loop wake the task of timed events once', async () => {
    const { streams, woken } = streamsOf(new CountedOutbox());
    for (let times = 0; times < 50; times += 1) await readAll(await streams.open(REQUEST));
    expect(woken.times).toBe(1);
  });

  it('that catch up read one at a time, whosever they are', async () => {
    const outbox = new CountedOutbox();
    const { streams } = streamsOf(outbox);
    const opened = await Promise.all(
      Array.from({ length: 40 }, (_, index) => streams.open({ ...REQUEST, client: `client ${index % 4}` })),
    );
    const read = await Promise.all(opened.map(readAll));
    expect(read.map((chunks) => chunks.length)).toEqual(opened.map(() => LAST_EVENT + 1));
    expect([outbox.mostReadsAtOnce, outbox.reads]).toEqual([1, 40 * 10]);
  });

  it('that end before their first chunk, or fail to open, keep no place', async () => {
    const outbox = new CountedOutbox();
    const { streams } = streamsOf(outbox);
    for (let times = 0; times < 20; times += 1) {
      const chunks = await streams.open(REQUEST);
      await chunks[Symbol.asyncIterator]().return?.();
    }
    outbox.follow = async () => Promise.reject(new Error('away'));
    for (let times = 0; times < 20; times += 1) await expect(streams.open(REQUEST)).rejects.toThrow('away');
  });

  it('without events send a heartbeat every 15 seconds, after a check that they are still allowed', async () => {
    const clock = new ManualClock(0);
    const outbox = new CountedOutbox();
    const { streams } = streamsOf(outbox, clock);
    let checks = 0;
    const isAllowed = async () => {
      checks += 1;
      return checks < 3;
    };
    const request = { ...REQUEST, afterSequence: LAST_EVENT, isAllowed };
    const chunks = (await streams.open(request))[Symbol.asyncIterator]();
    await chunks.next();
    for (const checksBefore of [0, 1]) {
      const next = chunks.next();
      const readsBefore = outbox.reads;
      await until(async () => outbox.reads >= readsBefore + 2);
      expect(checks).toBe(checksBefore);
      clock.advance(15_000);
      expect((await next).value).toBe(`: heartbeat\nid: ${LAST_EVENT}\n\n`);
    }
    clock.advance(15_000);
    expect(await chunks.next()).toMatchObject({ done: true });
    expect(checks).toBe(3);
  });

  it('end by themselves when the store is away, and fail at any other fault', async () => {
    const outbox = new CountedOutbox();
    const { streams } = streamsOf(outbox);
    const faults = [new StoreUnavailable('postgres', new Error('away')), new Error('a fault')];
    const ends = faults.map(async (fault) => {
      const chunks = (await streams.open(REQUEST))[Symbol.asyncIterator]();
      await chunks.next();
      outbox.after = () => Promise.reject(fault);
      return chunks.next();
    });
    const [away, failed] = await Promise.allSettled(ends);
    expect(away).toMatchObject({ value: { done: true } });
    expect(failed).toMatchObject({ reason: faults[1] });
  });

  it('are noted once more every hour, so that events are written for them', async () => {
    const clock = new ManualClock(0);
    const outbox = new CountedOutbox();
    const { streams } = streamsOf(outbox, clock);
    const chunks = (await streams.open({ ...REQUEST, afterSequence: LAST_EVENT }))[Symbol.asyncIterator]();
    await chunks.next();
    for (const follows of [1, 2]) {
      const heartbeat = chunks.next();
      const readsBefore = outbox.reads;
      await until(async () => outbox.reads >= readsBefore + 2);
      expect(outbox.follows).toBe(follows);
      clock.advance(3_600_000);
      await heartbeat;
    }
    streams.stop();
    expect(await chunks.next()).toMatchObject({ done: true });
    expect(outbox.follows).toBe(3);
  });
});
