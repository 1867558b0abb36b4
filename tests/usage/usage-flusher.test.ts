import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { pino } from 'pino';
import { StoreBusy, StoreUnavailable } from '../../src/errors.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { InProcessLiveUsage } from '../../src/storage/embedded/in-process-live-usage.ts';
import type { LiveUsage, UsageBatch } from '../../src/usage/live-usage.ts';
import { OutageReminder } from '../../src/usage/outage-reminder.ts';
import { ShardLease, ShardLeaseEnded } from '../../src/usage/shard-lease.ts';
import { SHARDS, shardOf } from '../../src/usage/shards.ts';
import { UsageFlusher } from '../../src/usage/usage-flusher.ts';
import type { ApplyOutcome, UsageHistory } from '../../src/usage/usage-history.ts';
import { noCounts } from '../../src/usage/usage-slice.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';
import { requestsOf, sliceOf } from './support/sample-usage.ts';
import { silent, writeSlices } from './support/usage-stores.ts';

/** A history that only remembers what it took, and rejects as the test says. */
class ListedHistory implements UsageHistory {
  readonly taken: UsageBatch[] = [];
  rejection: (batch: UsageBatch) => Error | undefined = () => undefined;
  outcome: ApplyOutcome = { kind: 'applied' };

  /** Called between the steps of a transaction. */
  midway: () => void | Promise<void> = () => {};

  async apply(batch: UsageBatch, requireHeld = () => {}): Promise<ApplyOutcome> {
    await this.midway();
    requireHeld();
    const rejected = this.rejection(batch);
    if (rejected) throw rejected;
    this.taken.push(batch);
    return this.outcome;
  }
  hasWrite = async () => false;
  read = async () => ({
    lastIds: new Map(),
    totals: noCounts(),
    lastUsedAtMs: null,
    endpoints: new Map(),
    customers: new Map(),
  });
  readTotals = async () => ({ lastIds: new Map(), keys: new Map() });
  prune = async () => {};
}

async function setUp(keyIds: readonly string[], intervalMs = 0) {
  const live: LiveUsage = new InProcessLiveUsage(systemClock, systemRandom);
  const history = new ListedHistory();
  const flusher = new UsageFlusher({ live, history, clock: systemClock, log: silent, intervalMs });
  for (const keyId of keyIds) await writeSlices(live, sliceOf(keyId, { times: 2 }));
  return { live, history, flusher };
}

const named = (count: number) => Array.from({ length: count }, (_, index) => `key ${index}`);

describe('the flusher', () => {
  it('moves the counts of all keys, and says what it did', async () => {
    const { live, history, flusher } = await setUp(named(1000));
    expect(await flusher.flush()).toBe(true);
    const moved = history.taken.flatMap(({ slices }) => slices.map(({ keyId }) => keyId));
    expect(moved.toSorted()).toEqual(named(1000).toSorted());
    expect(await live.read(['key 7'])).toEqual([]);
    expect(flusher.stats).toMatchObject({ batchesApplied: SHARDS, batchesPending: 0, failures: 0 });
    expect(await flusher.flush()).toBe(true);
    expect(history.taken).toHaveLength(SHARDS);
  });

  it('passes over a shard that another flusher has, which is no failure', async () => {
    const { live, history, flusher } = await setUp(named(1000));
    const take = live.take.bind(live);
    live.take = async (shard) => (shard === 3 ? undefined : take(shard));
    expect(await flusher.flush()).toBe(true);
    expect(history.taken.map(({ shard }) => shard)).not.toContain(3);
    expect(flusher.stats).toMatchObject({ batchesApplied: SHARDS - 1, failures: 0 });
  });

  it('moves the counts of all keys in an even round as well', async () => {
    const { history, flusher } = await setUp(named(1000), 100);
    expect(await flusher.flushEvenly()).toBe(true);
    expect(history.taken.map(({ shard }) => shard).toSorted((a, b) => a - b)).toEqual([
      ...Array(SHARDS).keys(),
    ]);
  });

  it('leaves most shards for later in an even round, and moves them when asked to', async () => {
    const { history, flusher } = await setUp(named(1000), 3_600_000);
    const round = flusher.flushEvenly();
    await until(() => history.taken.length > 0);
    await flusher.stop();
    expect(await round).toBe(false);
    expect(flusher.stats.lastDoneAtMs).toBe(0);
    expect(history.taken).toHaveLength(1);
    expect(await flusher.flush()).toBe(true);
    expect(history.taken).toHaveLength(SHARDS);
  });

  it('makes a further round where the one under way was stopped', async () => {
    const { history, flusher } = await setUp(named(1000), 3_600_000);
    const round = flusher.flushEvenly();
    await until(() => history.taken.length > 0);
    const stopped = flusher.stop();
    expect(await flusher.flush()).toBe(true);
    await stopped;
    expect(await round).toBe(false);
    expect(history.taken).toHaveLength(SHARDS);
  });

  it('says how late the most overdue batch was until the next round has ended', async () => {
    const { live, history } = await setUp(named(1000));
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + 60_000 };
    const flusher = new UsageFlusher({ live, history, clock, log: silent, intervalMs: 0 });
    history.rejection = ({ shard }) => (shard === SHARDS - 1 ? new Error('value out of range') : undefined);
    await flusher.flush();
    const lags: number[] = [];
    const take = live.take.bind(live);
    live.take = async (shard) => {
      lags.push(flusher.stats.lagMs);
      return take(shard);
    };
    await flusher.flush();
    expect(lags).toHaveLength(SHARDS);
    expect(Math.min(...lags)).toBeGreaterThanOrEqual(60_000);
    history.rejection = () => undefined;
    await flusher.flush();
    await flusher.flush();
    expect(flusher.stats.lagMs).toBe(0);
  });

  it('keeps everything while the history is down, in one batch a shard', async () => {
    const { live, history, flusher } = await setUp(['key 1']);
    history.rejection = () => new StoreUnavailable('postgres', new Error('unavailable'));
    for (let round = 0; round < 10; round += 1) {
      expect(await flusher.flush()).toBe(false);
      await writeSlices(live, sliceOf('key 1', {}));
    }
    expect((await live.read(['key 1'])).map((batch) => requestsOf([batch]))).toEqual([2, 10]);
    expect(flusher.stats.failures).toBeGreaterThanOrEqual(10);
    history.rejection = () => undefined;
    expect(await flusher.flush()).toBe(true);
    expect(await flusher.flush()).toBe(true);
    expect(await live.read(['key 1'])).toEqual([]);
    expect(requestsOf(history.taken)).toBe(2 + 10);
  });

  it('holds what waits within its bounds less and less often while the history is down', async () => {
    const { live, history, flusher } = await setUp(named(1000));
    history.rejection = () => new StoreUnavailable('postgres', new Error('unavailable'));
    let compacted = 0;
    live.compact = async () => {
      compacted += 1;
    };
    const rounds: number[] = [];
    for (let round = 1; round <= 20; round += 1) {
      compacted = 0;
      await flusher.flush();
      if (compacted === SHARDS) rounds.push(round);
    }
    expect(rounds).toEqual([1, 2, 4, 8, 16]);
    // A round in which the history is there ends the outage: the next one begins with the first again.
    history.rejection = () => undefined;
    await flusher.flush();
    await flusher.flush();
    await writeSlices(live, sliceOf('key 1', {}));
    history.rejection = () => new StoreUnavailable('postgres', new Error('unavailable'));
    compacted = 0;
    await flusher.flush();
    expect(compacted).toBeGreaterThan(1);
  });

  it('says that a round failed, and how often, where the live counts are away', async () => {
    const { live, flusher } = await setUp(['key 1']);
    const take = live.take.bind(live);
    live.take = () => Promise.reject(new StoreUnavailable('redis', new Error('unavailable')));
    expect(await flusher.flush()).toBe(false);
    expect(flusher.stats).toMatchObject({ lastDoneAtMs: 0, failures: expect.any(Number) });
    expect(flusher.stats.failures).toBeGreaterThan(0);
    live.take = take;
    expect(await flusher.flush()).toBe(true);
  });

  it('does not let a batch that the history rejects hold up the others', async () => {
    const { live, history, flusher } = await setUp(named(50));
    history.rejection = ({ shard }) =>
      shard === shardOf('key 13') ? new Error('value out of range') : undefined;
    expect(await flusher.flush()).toBe(false);
    const shards = new Set(named(50).map(shardOf));
    expect(history.taken).toHaveLength(shards.size - 1);
    expect(await live.read(['key 13'])).toHaveLength(1);
    expect(flusher.stats.failures).toBeGreaterThan(0);
  });

  it('says which shard a rejected batch is of', async () => {
    const { live, history } = await setUp(named(50));
    const lines: object[] = [];
    const write = (line: string) => void lines.push(JSON.parse(line) as object);
    const log = pino({ base: null, timestamp: false }, { write });
    const flusher = new UsageFlusher({ live, history, clock: systemClock, log, intervalMs: 0 });
    const shard = shardOf('key 13');
    history.rejection = (batch) => (batch.shard === shard ? new Error('value out of range') : undefined);
    await flusher.flush();
    expect(lines).toEqual([
      { level: 50, shard, err: expect.anything(), msg: 'usage was rejected by its store; it is kept' },
    ]);
  });

  it('does not let a shard that another transaction holds keep the others waiting', async () => {
    const { live, history, flusher } = await setUp(named(1000));
    history.rejection = ({ shard }) =>
      shard === 0 ? new StoreBusy('postgres', new Error('canceling statement')) : undefined;
    expect(await flusher.flush()).toBe(false);
    expect(history.taken).toHaveLength(SHARDS - 1);
    history.rejection = () => undefined;
    expect(await flusher.flush()).toBe(true);
    expect(await live.read(named(1000))).toEqual([]);
  });

  it('says why a batch was rejected and retries it where compaction fails too', async () => {
    const { live, history } = await setUp(['key 1']);
    const messages: string[] = [];
    const write = (line: string) => void messages.push(JSON.parse(line).err.message);
    const log = pino({ level: 'error' }, { write });
    const flusher = new UsageFlusher({ live, history, clock: systemClock, log, intervalMs: 0 });
    history.rejection = () => new Error('value out of range');
    live.compact = async () => {
      throw new Error('script killed');
    };
    expect(await flusher.flush()).toBe(false);
    expect(messages).toEqual(['value out of range', 'script killed']);
    expect(flusher.stats).toMatchObject({ batchesPending: 0, failures: 2 });
    history.rejection = () => undefined;
    // Only a shard whose lease was given back can be taken.
    expect(await flusher.flush()).toBe(true);
    expect(requestsOf(history.taken)).toBe(2);
  });

  it('names the store that a move needed first, where compaction lacks another', async () => {
    const { live, history } = await setUp(['key 1']);
    const stores: string[] = [];
    const write = (line: string) => void stores.push(JSON.parse(line).store);
    const log = pino({ level: 'warn' }, { write });
    const flusher = new UsageFlusher({ live, history, clock: systemClock, log, intervalMs: 0 });
    history.rejection = () => new StoreUnavailable('postgres', new Error('unavailable'));
    live.compact = async () => {
      throw new StoreUnavailable('redis', new Error('slow'));
    };
    expect(await flusher.flush()).toBe(false);
    expect(stores).toEqual(['postgres']);
  });

  it('drops a batch that the history had before, and says so', async () => {
    const { live, history, flusher } = await setUp(['key 1']);
    history.outcome = { kind: 'outdated' };
    expect(await flusher.flush()).toBe(true);
    expect(await live.read(['key 1'])).toEqual([]);
    expect(flusher.stats).toMatchObject({ batchesApplied: 0, batchesOutdated: 1 });
  });
});

describe('the log of the flusher', () => {
  it('has one short line when a store goes down, one a minute, and one when it is back', async () => {
    const { live, history } = await setUp(named(SHARDS));
    const lines: string[] = [];
    const log = pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(line) });
    const clock = new ManualClock(0);
    const flusher = new UsageFlusher({ live, history, clock, log, intervalMs: 0 });
    history.rejection = () => new StoreUnavailable('postgres', new Error('connect ECONNREFUSED'));
    for (let round = 0; round < 12; round += 1) {
      await flusher.flush();
      clock.advance(10_000);
    }
    history.rejection = () => undefined;
    await flusher.flush();
    await flusher.flush();

    const failed = 'usage could not be moved; it is kept and tried again';
    const facts = { level: 40, store: 'postgres', reason: 'connect ECONNREFUSED', msg: failed };
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { ...facts, seconds: 0 },
      { ...facts, seconds: 60 },
      { level: 30, seconds: 120, msg: 'usage is moved again' },
    ]);
  });

  it('says that usage is moved again once a shard that was held for rounds is moved', async () => {
    const { live, history } = await setUp([]);
    const messages: string[] = [];
    const log = pino({}, { write: (line: string) => void messages.push(JSON.parse(line).msg) });
    const flusher = new UsageFlusher({ live, history, clock: new ManualClock(0), log, intervalMs: 0 });
    const busy = new StoreBusy('postgres', new Error('canceling statement'));
    history.rejection = ({ shard }) => (shard === 7 ? busy : undefined);
    const failed = 'usage could not be moved; it is kept and tried again';
    for (let round = 1; round <= 3; round += 1) {
      for (const keyId of named(1000)) await writeSlices(live, sliceOf(keyId, {}));
      expect(await flusher.flush()).toBe(false);
      expect(history.taken).toHaveLength(round * (SHARDS - 1));
      expect(messages).toEqual([failed]);
    }
    history.rejection = () => undefined;
    expect(await flusher.flush()).toBe(true);
    expect(messages).toEqual([failed, 'usage is moved again']);
  });

  it('says that usage is moved again although a batch is still rejected', async () => {
    const { live, history } = await setUp(named(1000));
    const messages: string[] = [];
    const log = pino({}, { write: (line: string) => void messages.push(JSON.parse(line).msg) });
    const flusher = new UsageFlusher({ live, history, clock: new ManualClock(0), log, intervalMs: 0 });
    history.rejection = () => new StoreUnavailable('postgres', new Error('unavailable'));
    expect(await flusher.flush()).toBe(false);
    history.rejection = ({ shard }) => (shard === 7 ? new Error('value out of range') : undefined);
    expect(await flusher.flush()).toBe(false);
    expect(messages).toContain('usage is moved again');
  });

  describe('has no line that an outage is over', () => {
    /** A flusher over an outage that has lasted for two minutes, and what it logs from then on. */
    async function setUpOutage() {
      const { live, history } = await setUp(named(SHARDS));
      const messages: string[] = [];
      const log = pino({}, { write: (line: string) => void messages.push(JSON.parse(line).msg) });
      const clock = new ManualClock(0);
      const flusher = new UsageFlusher({ live, history, clock, log, intervalMs: 0 });
      history.rejection = () => new StoreUnavailable('postgres', new Error('unavailable'));
      await flusher.flush();
      clock.advance(120_000);
      messages.length = 0;
      return { live, history, flusher, messages };
    }

    it('after a round that moves a batch before the history is unavailable', async () => {
      const { history, flusher, messages } = await setUpOutage();
      const unavailable = new StoreUnavailable('postgres', new Error('unavailable'));
      history.rejection = () => (history.taken.length === 0 ? undefined : unavailable);
      expect(await flusher.flush()).toBe(false);
      expect(history.taken).toHaveLength(1);
      expect(messages).toEqual(['usage could not be moved; it is kept and tried again']);
    });

    it('after a round that is stopped before it moves a batch', async () => {
      const { live, flusher, messages } = await setUpOutage();
      live.take = async () => {
        void flusher.stop();
        return [];
      };
      expect(await flusher.flush()).toBe(false);
      expect(messages).toEqual([]);
    });
  });

  it('says a minute later that an outage is over where nothing is left to move', () => {
    const lines: string[] = [];
    const log = pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(line) });
    const clock = new ManualClock(0);
    const reminder = new OutageReminder(log, clock);
    const failed = new StoreUnavailable('redis', new Error('unavailable'));
    reminder.noteFailure(failed);
    clock.advance(20_000);
    reminder.noteFailure(failed);
    clock.advance(50_000);
    reminder.noteRound(false);
    expect(lines).toHaveLength(1);
    clock.advance(10_000);
    reminder.noteRound(false);
    reminder.noteRound(false);
    expect(lines.slice(1).map((line) => JSON.parse(line))).toEqual([
      { level: 30, seconds: 20, msg: 'usage is moved again' },
    ]);
  });
});

describe('the log of an outage', () => {
  it.each([-3_600_000, 3_600_000])('says how long it lasted although the clock is set by %d ms', (ms) => {
    const lines: string[] = [];
    const log = pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(line) });
    const clock = new ManualClock(7_200_000);
    const reminder = new OutageReminder(log, clock);
    reminder.noteFailure(new StoreUnavailable('postgres', new Error('unavailable')));
    clock.setWallClockAhead(ms);
    reminder.noteRound(false);
    expect(lines).toHaveLength(1);
    clock.advance(60_000);
    reminder.noteFailure(new StoreUnavailable('postgres', new Error('unavailable')));
    clock.advance(10_000);
    reminder.noteRound(true);
    expect(lines.map((line) => JSON.parse(line).seconds)).toEqual([0, 60, 70]);
  });
});

describe('a flusher whose lock on a shard ends while it is at work', () => {
  async function standStill(renew: () => Promise<boolean>, standMs: number) {
    const { live, history } = await setUp(['key 1']);
    const clock = new ManualClock(Date.now());
    const released: number[] = [];
    live.renew = renew;
    live.release = async (shard = Number.NaN) => void released.push(shard);
    const flusher = new UsageFlusher({ live, history, clock, log: silent, intervalMs: 0 });
    history.midway = () => clock.advance(standMs);
    return { live, history, flusher, released };
  }
  const shard = shardOf('key 1');

  it('adds nothing, leaves the lock alone, and says how long it went on', async () => {
    const { live, history, flusher, released } = await standStill(async () => true, 31_000);
    expect(await flusher.flush()).toBe(true);
    expect(history.taken).toEqual([]);
    expect(released).not.toContain(shard);
    expect(flusher.stats).toMatchObject({
      leasesLost: 1,
      leaseOverrunMs: 1000,
      batchesPending: 0,
      failures: 0,
    });
    history.midway = () => {};
    await flusher.flush();
    expect(history.taken).toHaveLength(1);
    expect(released).toContain(shard);
    expect(await live.read(['key 1'])).toEqual([]);
    expect(flusher.stats.leasesLost).toBe(1);
  });

  it('counts the lock as lost also where a statement of that time has failed', async () => {
    const { history, flusher, released } = await standStill(async () => true, 31_000);
    const advance = history.midway;
    history.midway = () => {
      advance();
      throw new StoreUnavailable('postgres', new Error('Query read timeout'));
    };
    expect(await flusher.flush()).toBe(true);
    expect(released).not.toContain(shard);
    expect(flusher.stats).toMatchObject({ leasesLost: 1, leaseOverrunMs: 1000, failures: 0 });
  });

  it('goes on as long as the lock has not ended', async () => {
    const { history, flusher, released } = await standStill(async () => false, 29_999);
    expect(await flusher.flush()).toBe(true);
    expect(history.taken).toHaveLength(1);
    expect(released).toContain(shard);
    expect(flusher.stats).toMatchObject({ leasesLost: 0, leaseOverrunMs: 0 });
  });
});

describe('the lock of a shard', () => {
  /** With timers that fire when the test says so. */
  function leaseWith(renew: () => Promise<boolean>) {
    jest.useFakeTimers();
    const clock = new ManualClock(0);
    const lease = new ShardLease({ renew }, clock, { shard: 1, askedAtMs: clock.monotonicMs() });
    const pass = async (ms: number) => {
      clock.advance(ms);
      await jest.advanceTimersByTimeAsync(ms);
    };
    return { lease, pass };
  }
  afterEach(() => {
    jest.useRealTimers();
  });

  it('lasts while it is renewed, and not after that', async () => {
    const { lease, pass } = leaseWith(async () => true);
    for (let third = 0; third < 10; third += 1) await pass(10_000);
    lease.requireHeld();
    lease.stop();
    await pass(29_000);
    lease.requireHeld();
    await pass(1000);
    expect(lease.requireHeld).toThrow(ShardLeaseEnded);
  });

  it('ends at once where the store says that it is not held', async () => {
    const { lease, pass } = leaseWith(async () => false);
    await pass(10_000);
    expect(lease.requireHeld).toThrow(ShardLeaseEnded);
    lease.stop();
  });

  it('outlives renewals that fail, for its own time, and is not renewed after its end', async () => {
    let renewals = 0;
    const { lease, pass } = leaseWith(async () => {
      renewals += 1;
      throw new StoreUnavailable('redis', new Error('down'));
    });
    await pass(10_000);
    await pass(10_000);
    lease.requireHeld();
    await pass(10_000);
    expect(lease.requireHeld).toThrow(ShardLeaseEnded);
    await pass(30_000);
    expect(renewals).toBe(2);
    lease.stop();
  });
});
