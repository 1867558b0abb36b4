import { describe, expect, it } from '@jest/globals';
import { CountRestorer, type UncountedUnits } from '../../../src/limiter/guards/count-restorer.ts';
import { DegradedWindows } from '../../../src/limiter/guards/degraded-windows.ts';
import {
  CircuitOpen,
  type FailureMode,
  FailureModeLimiter,
  guardRateLimiter,
} from '../../../src/limiter/guards/guarded-rate-limiter.ts';
import { NotCounted } from '../../../src/limiter/not-counted.ts';
import type { Decision, LimitSubject, RateLimiter } from '../../../src/limiter/rate-limiter.ts';
import { systemRandom } from '../../../src/platform/random.ts';
import {
  counted,
  type FlatDecision,
  flat,
  quota,
  subject,
  type TestSubject,
} from '../../support/limiter-stores.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';

function setUp(mode: FailureMode, cause: Error = new CircuitOpen()) {
  const clock = new ManualClock(Date.UTC(2026, 0));
  const responses: { inner: Decision; liveReplicas: number } = {
    inner: { kind: 'unavailable', cause },
    liveReplicas: 3,
  };
  const inner: RateLimiter = {
    decide: (_subject: LimitSubject, decided: (decision: Decision) => void) => decided(responses.inner),
  };
  const uncounted: string[] = [];
  let shared = 0;
  const limiter = new FailureModeLimiter(inner, {
    mode,
    clock,
    liveReplicas: () => responses.liveReplicas,
    restorer: {
      ...{ size: 1, settle: () => false, unitsOf: () => 0 },
      note: ({ keyId }) => void uncounted.push(keyId),
      giveBack: async () => {
        shared += 1;
      },
    },
  });
  const ask = (fields: Partial<TestSubject> = {}): FlatDecision => {
    const decisions: FlatDecision[] = [];
    limiter.decide(subject('key_1', { fresh: false, quota: quota(10, 'hour'), ...fields }), (decision) =>
      decisions.push(flat(decision)),
    );
    const [decision] = decisions;
    if (decision === undefined || decisions.length > 1) throw new Error(`decided ${decisions.length} times`);
    return decision;
  };
  return { clock, responses, limiter, ask, uncounted, sharedDecisions: () => shared };
}

describe('the failure mode', () => {
  it('local allows the limit divided by the live replicas, rounded up', () => {
    const { ask, limiter, uncounted } = setUp('local');
    const kinds = Array.from({ length: 6 }, () => ask().kind);
    expect(kinds).toEqual(['allowed', 'allowed', 'allowed', 'allowed', 'limited', 'limited']);
    expect(ask({ version: '9.9' })).toMatchObject({ kind: 'limited', degraded: true });
    expect(limiter.degraded).toEqual({ allowed: 4, limited: 3, unlimited: 0, stale: 0, unavailable: 0 });
    expect(limiter.shared.unavailable).toBe(7);
    expect(uncounted).toHaveLength(4);
  });

  it('local follows the number of live replicas, and allows one request at least', () => {
    const { ask, responses } = setUp('local');
    responses.liveReplicas = 50;
    expect(ask()).toMatchObject({ kind: 'allowed', remaining: 0, degraded: true });
    expect(ask().kind).toBe('limited');
    responses.liveReplicas = 1;
    expect(ask()).toMatchObject({ kind: 'allowed', remaining: 8 });
  });

  it('local opens a new window when the old one ends', () => {
    const { ask, clock, responses } = setUp('local');
    responses.liveReplicas = 10;
    expect(ask().kind).toBe('allowed');
    expect(ask().kind).toBe('limited');
    clock.advance(3_600_000);
    expect(ask().kind).toBe('allowed');
  });

  describe('local, after a shared decision', () => {
    const HOUR_MS = 3_600_000;
    const AHEAD_MS = 12_345_678;

    /** The shared clock is far ahead of ours; the window ends half an hour after the shared count was asked last. */
    function afterShared(words: readonly { remaining: number | 'none' }[]) {
      const gateway = setUp('local');
      const { inner } = gateway.responses;
      const nowMs = gateway.clock.nowMs() + AHEAD_MS;
      const times = { nowMs, resetAtMs: nowMs + HOUR_MS / 2, degraded: false };
      for (const { remaining } of words) {
        gateway.responses.inner =
          remaining === 'none'
            ? counted('limited', { used: 10, ...times })
            : counted('allowed', { used: 10 - remaining, ...times });
        gateway.ask();
      }
      gateway.responses.inner = inner;
      return { ...gateway, resetAtMs: times.resetAtMs };
    }

    it.each([[[{ remaining: 0 }]], [[{ remaining: 3 }, { remaining: 'none' as const }]]])(
      'allows nothing in a used-up window until its reset by the shared clock: %j',
      (words) => {
        const { ask, clock, resetAtMs } = afterShared(words);
        expect(ask()).toMatchObject({ kind: 'limited', resetAtMs, degraded: true });
        clock.advance(HOUR_MS / 2 - 1);
        expect(ask()).toMatchObject({ kind: 'limited', nowMs: resetAtMs - 1 });
        clock.advance(1);
        expect(ask()).toMatchObject({ kind: 'allowed', remaining: 3 });
      },
    );

    it('allows the share of what was left, until its reset', () => {
      const { ask, clock } = afterShared([{ remaining: 7 }, { remaining: 4 }]);
      expect([ask(), ask(), ask()].map(({ kind }) => kind)).toEqual(['allowed', 'allowed', 'limited']);
      clock.advance(HOUR_MS / 2);
      expect(ask()).toMatchObject({ kind: 'allowed', remaining: 3 });
    });

    it('starts again from each reply of the shared limiter', () => {
      const { ask, responses, clock } = afterShared([{ remaining: 3 }]);
      expect([ask().kind, ask().kind]).toEqual(['allowed', 'limited']);
      const { inner } = responses;
      const nowMs = clock.nowMs() + AHEAD_MS;
      responses.inner = counted('allowed', { used: 4, nowMs, resetAtMs: nowMs + 1000 });
      ask();
      responses.inner = inner;
      expect([ask().kind, ask().kind, ask().kind]).toEqual(['allowed', 'allowed', 'limited']);
    });

    it('follows a changed limit, and opens another window for another period', () => {
      const { ask } = afterShared([{ remaining: 0 }]);
      expect(ask().kind).toBe('limited');
      expect(ask({ quota: quota(13, 'hour') })).toMatchObject({ kind: 'allowed', remaining: 0 });
      expect(ask({ quota: quota(9, 'hour') }).kind).toBe('limited');
      expect(ask({ quota: quota(9, 'day') })).toMatchObject({ kind: 'allowed', remaining: 2 });
      expect(ask({ quota: quota(9, 'day') })).toMatchObject({ kind: 'allowed', remaining: 1 });
    });

    it('remembers at most 100 000 keys, and forgets the oldest', () => {
      const windows = new DegradedWindows(new ManualClock(0));
      const used = counted('limited', { used: 10, nowMs: 0, resetAtMs: HOUR_MS });
      for (let key = 0; key <= 100_000; key += 1) windows.learn(subject(`${key}`), used);
      expect(['100000', '1', '0'].map((keyId) => windows.decide(subject(keyId), 1).kind)).toEqual([
        'limited',
        'limited',
        'allowed',
      ]);
    });
  });

  it('notes as uncounted only what was not sent: a failed call may have been counted', () => {
    const { ask, uncounted } = setUp('local', new Error('Command timed out'));
    expect(ask().kind).toBe('allowed');
    expect(uncounted).toEqual([]);
  });

  it('local allows a key without a quota', () => {
    expect(setUp('local').ask({ quota: null })).toEqual({ kind: 'unlimited', degraded: true });
  });

  it('open allows everything, degraded', () => {
    const { ask, limiter } = setUp('open');
    expect(ask()).toEqual({ kind: 'unlimited', degraded: true });
    expect(limiter.degraded.unlimited).toBe(1);
  });

  it('closed passes `unavailable` on', () => {
    const { ask, limiter } = setUp('closed');
    expect(ask()).toEqual({ kind: 'unavailable', cause: expect.any(CircuitOpen) });
    expect(limiter.degraded.unavailable).toBe(1);
  });

  it.each<FailureMode>(['local', 'open', 'closed'])(
    '%s leaves every response of the shared limiter alone',
    (mode) => {
      const { ask, responses, limiter, sharedDecisions } = setUp(mode);
      const decisions: Decision[] = [
        counted('allowed'),
        counted('limited'),
        { kind: 'unlimited', degraded: false },
        { kind: 'stale' },
      ];
      for (const decision of decisions) {
        responses.inner = decision;
        expect(ask()).toEqual(flat(decision));
      }
      expect(limiter.shared).toEqual({ allowed: 1, limited: 1, unlimited: 1, stale: 1, unavailable: 0 });
      expect(sharedDecisions()).toBe(2);
    },
  );

  it.each<FailureMode>(['local', 'open', 'closed'])(
    '%s is degraded from its first decision until the shared limiter decides',
    (mode) => {
      const { ask, responses, limiter } = setUp(mode, new Error('Command timed out'));
      expect(limiter.isDegraded).toBe(false);
      const unavailable = responses.inner;
      ask();
      expect(limiter.isDegraded).toBe(true);
      responses.inner = { kind: 'stale' };
      ask();
      expect(limiter.isDegraded).toBe(false);
      responses.inner = unavailable;
      ask();
      expect(limiter.isDegraded).toBe(true);
    },
  );

  it('is degraded for a minute after the last decision where no other follows', () => {
    const { ask, clock, limiter } = setUp('local');
    ask();
    clock.advance(59_999);
    ask();
    clock.advance(59_999);
    expect(limiter.isDegraded).toBe(true);
    clock.advance(1);
    expect(limiter.isDegraded).toBe(false);
  });
});

describe('the restorer of counts', () => {
  const hourly = quota(10, 'hour');

  interface Restored extends UncountedUnits {
    readonly operationId: string;
  }

  function setUpRestorer(restore: (units: UncountedUnits) => Promise<void> = async () => {}) {
    const restored: Restored[] = [];
    const clock = new ManualClock(Date.UTC(2026, 0));
    const counters = {
      restore: async (units: UncountedUnits, operationId: string) => {
        restored.push({ ...units, operationId });
        await restore(units);
      },
    };
    let ids = 0;
    const random = {
      ...systemRandom,
      bytes: (count: number) => {
        ids += 1;
        return systemRandom.bytes(count);
      },
    };
    const restorer = new CountRestorer({ counters, clock, random });
    const note = (keyId: string, resetAtMs = 9000) =>
      restorer.note(subject(keyId), counted('allowed', { limit: hourly, resetAtMs }));
    const perCustomer = quota(10, 'hour', { id: 'tenant', per: 'customer' });
    const noteCustomer = (customerId: string) =>
      restorer.note(
        subject('key', { customerId }),
        counted('allowed', { limit: perCustomer, resetAtMs: 9000 }),
      );
    return { restored, clock, note, noteCustomer, restorer, prepared: () => ids };
  }

  it('gives back once what was allowed in windows that are still open', async () => {
    const { restored, note, restorer } = setUpRestorer();
    note('ended', 1500);
    note('open', 1500);
    note('open');
    note('open');
    await restorer.giveBack(1600);
    await restorer.giveBack(1600);
    const open = { keyId: 'open', limit: hourly, customerId: '', units: 2, resetAtMs: 9000 };
    expect(restored).toEqual([{ ...open, operationId: expect.any(String) }]);
    expect(restorer.givenBack).toBe(2);
    expect(restorer.size).toBe(0);
  });

  it('remembers nothing of a request that costs nothing', () => {
    const { restorer } = setUpRestorer();
    restorer.note({ ...subject('key'), cost: 0 }, counted('allowed', { limit: hourly, resetAtMs: 9000 }));
    expect(restorer.size).toBe(0);
  });

  it('sends again, as the same operation, only what may have been added', async () => {
    let isLost = true;
    const { restored, note, restorer } = setUpRestorer(async () => {
      if (isLost) throw new Error('no reply');
    });
    note('key');
    await restorer.giveBack(1600);
    note('key');
    expect([restorer.givenBack, restorer.size]).toEqual([0, 2]);
    isLost = false;
    // No request comes that would be an occasion.
    await until(() => restorer.size === 0 && restorer.givenBack === 2);
    expect(restored.map(({ units }) => units)).toEqual([1, 1, 1]);
    const operations = restored.map(({ operationId }) => operationId);
    expect(operations[1]).toBe(operations[0]);
    expect(operations[2]).not.toBe(operations[0]);
  });

  it('sends nothing again that the shared count may have forgotten to know', async () => {
    const { restored, clock, note, restorer } = setUpRestorer(() => Promise.reject(new Error('no reply')));
    note('key', 3_600_000);
    await restorer.giveBack(1600);
    clock.advance(300_000);
    await until(() => restorer.size === 0);
    expect(restored).toHaveLength(1);
  });

  it('keeps what certainly was not added, and tries again by itself', async () => {
    let isReadOnly = true;
    const { restored, note, restorer, prepared } = setUpRestorer(async () => {
      if (isReadOnly) throw new NotCounted('read-only');
    });
    for (let key = 0; key < 500; key += 1) note(`key ${key}`);
    const giving = restorer.giveBack(1600);
    note('key 0');
    await giving;
    // Not one for each of the others that wait, nor with each request.
    await restorer.giveBack(1600);
    expect(restored.length).toBeLessThanOrEqual(200);
    expect(prepared()).toBe(restored.length);
    expect(restorer.size).toBe(500);
    isReadOnly = false;
    restored.length = 0;
    await until(() => restorer.givenBack === 501);
    expect(restored.find(({ keyId }) => keyId === 'key 0')?.units).toBe(2);
    expect(restorer.size).toBe(0);
  });

  it.each([
    ['is still open', 0, [2, 1]],
    ['has ended', 400, [2]],
  ])(
    'keeps what two windows of one name counted, of the older one only if it %s',
    async (_, laterMs, expected) => {
      const attempt = Promise.withResolvers<void>();
      const { restored, clock, note, restorer } = setUpRestorer(() => attempt.promise);
      note('key', 2000);
      const giving = restorer.giveBack(1600);
      note('key', 4000);
      note('key', 4000);
      attempt.reject(new NotCounted('read-only'));
      await giving;
      restored.length = 0;
      clock.advance(laterMs);
      await until(() => restored.length > 0);
      expect(restored.map(({ units }) => units)).toEqual(expected);
    },
  );

  it('gives back also what waits behind windows that fail each time, as those of one server of a cluster', async () => {
    const { note, restorer } = setUpRestorer(async ({ keyId }) => {
      if (keyId !== 'there') throw new NotCounted('away');
    });
    for (let key = 0; key < 250; key += 1) note(`away ${key}`);
    note('there');
    await until(() => restorer.givenBack === 1);
    expect(restorer.size).toBe(250);
  });

  it('adds nothing to the window after the one that ended during an attempt', async () => {
    const { restored, clock, note, restorer } = setUpRestorer(async () => {
      clock.advance(1000);
      throw new NotCounted('away');
    });
    note('key', 2000);
    await restorer.giveBack(1600);
    await until(() => restorer.size === 0);
    expect(restored).toHaveLength(1);
  });

  it('gives back what is left at the stop, without a pause, and says how much that failed for', async () => {
    let isAway = true;
    const { restored, note, restorer } = setUpRestorer(async () => {
      if (isAway) throw new NotCounted('read-only');
    });
    note('key');
    note('key');
    await restorer.giveBack(1600);
    expect(await restorer.stop(1600)).toBe(2);
    isAway = false;
    restored.length = 0;
    const giving = restorer.stop(1600);
    expect(await giving).toBe(0);
    expect(restored).toMatchObject([{ keyId: 'key', units: 2 }]);
    expect(restorer.size).toBe(0);
  });

  it('remembers 100 000 windows of keys, 10 000 of customers, and counts other units', async () => {
    const { restored, note, noteCustomer, restorer } = setUpRestorer();
    for (let customer = 0; customer < 10_003; customer += 1) noteCustomer(`${customer}`);
    noteCustomer('0');
    expect([restorer.size, restorer.dropped]).toEqual([10_000, 3]);
    for (let key = 0; key < 100_002; key += 1) note(`${key}`);
    note('0');
    expect([restorer.size, restorer.dropped]).toEqual([110_000, 5]);
    await restorer.giveBack(1600);
    expect(restored).toHaveLength(110_000);
    expect([restorer.size, restorer.givenBack]).toEqual([0, 110_002]);
  });

  it('keeps places for what may have been added, and has them again afterwards', async () => {
    let isLost = true;
    const { noteCustomer, restorer } = setUpRestorer(async () => {
      if (isLost) throw new Error('no reply');
    });
    const noteMany = (): void => {
      for (let customer = 0; customer < 10_000; customer += 1) noteCustomer(`${customer}`);
    };
    noteMany();
    await restorer.giveBack(1600);
    noteMany();
    expect([restorer.size, restorer.dropped]).toEqual([10_000, 200]);
    isLost = false;
    await until(() => restorer.size === 0);
    noteMany();
    expect([restorer.size, restorer.dropped]).toEqual([10_000, 200]);
  });
});

describe('the guards in an outage that returns', () => {
  /** Redis decides only while `isThere`, and never takes back what was allowed without it. */
  function setUpGuards(restore: () => Promise<void>) {
    const clock = new ManualClock(Date.UTC(2026, 0));
    const redis = { isThere: false, used: 0 };
    const decide = (_subject: LimitSubject, decided: (decision: Decision) => void) => {
      if (!redis.isThere) return decided({ kind: 'unavailable', cause: new NotCounted('away') });
      redis.used += 1;
      const nowMs = clock.nowMs();
      decided(counted('allowed', { used: redis.used, nowMs, resetAtMs: nowMs + 1_800_000, degraded: false }));
    };
    const { failureMode } = guardRateLimiter(
      { decide },
      {
        clock,
        random: systemRandom,
        changes: { onChange: () => {}, onReset: () => {} },
        mode: 'local',
        liveReplicas: () => 1,
        counters: { restore },
      },
    );
    const key = subject('key', { fresh: false, quota: quota(10, 'hour') });
    const allowed = (requests: number): number => {
      let count = 0;
      for (let each = 0; each < requests; each++)
        failureMode.decide(key, ({ kind }) => {
          if (kind === 'allowed') count += 1;
        });
      return count;
    };
    /** Past each pause of the circuit breaker. */
    const set = (isThere: boolean): void => {
      redis.isThere = isThere;
      clock.advance(10_000);
    };
    return { allowed, set };
  }

  it.each([
    ['waits to be', () => Promise.reject(new NotCounted('not connected'))],
    ['is being', () => Promise.withResolvers<void>().promise],
  ])('allow no second share where the first one %s given back', async (_, restore) => {
    const { allowed, set } = setUpGuards(restore);
    expect(allowed(15)).toBe(10);
    for (let outage = 0; outage < 3; outage++) {
      set(true);
      expect(allowed(1)).toBe(1);
      set(false);
      expect(allowed(15)).toBe(0);
    }
  });
});
