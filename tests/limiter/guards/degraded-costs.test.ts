import { describe, expect, it } from '@jest/globals';
import { CostSettler } from '../../../src/limiter/cost-settler.ts';
import type { UncountedUnits } from '../../../src/limiter/guards/count-restorer.ts';
import { guardRateLimiter } from '../../../src/limiter/guards/guarded-rate-limiter.ts';
import { NotCounted } from '../../../src/limiter/not-counted.ts';
import type { CountedDecision, Decision, LimitSubject } from '../../../src/limiter/rate-limiter.ts';
import type { Limit } from '../../../src/limiter/request-limits.ts';
import type { CostDifference, SettledWindows } from '../../../src/limiter/window-counters.ts';
import { systemRandom } from '../../../src/platform/random.ts';
import { counted, quota, subject } from '../../support/limiter-stores.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';

const HOUR_MS = 3_600_000;

/** A replica whose Redis is away at first. */
function setUp(limits: readonly Limit[] = [quota(100, 'hour')]) {
  const clock = new ManualClock(Date.UTC(2026, 0));
  const redis = {
    isThere: false,
    failure: new NotCounted('away') as Error,
  };
  /** Units of each difference that the counters of Redis were called with, and what such a call fails with. */
  const settling = {
    units: [] as number[],
    failure: new Error('not for decisions without Redis') as Error | null,
  };
  const settle = async ({ units, windows }: CostDifference): Promise<SettledWindows> => {
    settling.units.push(units);
    if (settling.failure !== null) throw settling.failure;
    return { used: windows.map(() => units), nowMs: clock.nowMs() };
  };
  const restored: Omit<UncountedUnits, 'keyId' | 'resetAtMs'>[] = [];
  const decideShared = (_subject: LimitSubject, decided: (decision: Decision) => void) => {
    if (!redis.isThere) return decided({ kind: 'unavailable', cause: redis.failure });
    const nowMs = clock.nowMs();
    decided(counted('allowed', { nowMs, resetAtMs: nowMs + HOUR_MS }));
  };
  const { limiter, restorer, settleAlone } = guardRateLimiter(
    { decide: decideShared },
    {
      ...{ clock, random: systemRandom, mode: 'local', liveReplicas: () => 1 },
      changes: { onChange: () => {}, onReset: () => {} },
      counters: {
        restore: async ({ limit, customerId, units }) => {
          if (!redis.isThere) throw new NotCounted('away');
          restored.push({ limit, customerId, units });
        },
      },
    },
  );
  const settler = new CostSettler({ settle }, { settleAlone });
  const asked = (cost: number, customerId = 'acme') =>
    subject('key', { fresh: false, limits, cost, customerId, mayRelease: true });
  const decide = (cost: number, customerId?: string): Decision => {
    const decisions: Decision[] = [];
    limiter.decide(asked(cost, customerId), (decision) => decisions.push(decision));
    const [decision] = decisions;
    if (decision === undefined) throw new Error('not decided');
    return decision;
  };
  const allow = (reserve: number, customerId?: string) => {
    const decision = decide(reserve, customerId);
    if (decision.kind !== 'allowed') throw new Error(`${decision.kind}, not allowed`);
    const report = (cost: number) => settler.settle(asked(reserve, customerId), decision, String(cost));
    return { decision, report };
  };
  /** Past each pause of the circuit breaker. */
  const redisReturns = () => {
    redis.isThere = true;
    clock.advance(10_000);
  };
  return { clock, redis, restored, restorer, settling, settler, decide, allow, redisReturns };
}

function usedIn(decision: Decision): readonly number[] {
  return (decision as CountedDecision).windows.map(({ used }) => used);
}

describe('costs that a backend reports for requests decided without Redis', () => {
  it('count in the share of the replica', async () => {
    const { allow, decide, settler } = setUp();
    allow(1).report(60);
    allow(1).report(38);
    expect(usedIn(allow(1).decision)).toEqual([99]);
    allow(1).report(4000);
    expect(decide(1).kind).toBe('limited');
    await settler.stop();
    expect(settler.counts).toEqual({ settled: 3, missing: 0, malformed: 0, failed: 0 });
  });

  it('give room back that was reserved, and no more than that', () => {
    const { allow, decide } = setUp();
    const [first, second] = [allow(90), allow(10)];
    expect(decide(1).kind).toBe('limited');
    first.report(0);
    second.report(7);
    expect(decide(93).kind).toBe('allowed');
    expect(decide(1).kind).toBe('limited');
  });

  it('count in the windows of the request only, also in those of customers', () => {
    const limits = [
      quota(1000, 'hour'),
      quota(100, 'day', { id: 'tenant', per: 'customer' }),
      quota(1, 'hour', { id: 'next', mode: 'shadow' }),
    ];
    const { allow, decide } = setUp(limits);
    allow(2, 'acme').report(99);
    expect(usedIn(decide(1, 'acme'))).toEqual([100, 100, 1]);
    expect(usedIn(decide(1, 'else'))).toEqual([101, 1, 1]);
    expect(decide(1, 'acme').kind).toBe('limited');
  });

  it('are in what Redis gets afterwards', async () => {
    const { allow, decide, restored, redisReturns } = setUp();
    allow(1).report(40);
    allow(20).report(5);
    allow(1).report(0);
    redisReturns();
    decide(1);
    await until(() => restored.length > 0);
    expect(restored.map(({ units }) => units)).toEqual([45]);
  });

  it('reach Redis also if they come when it has the reserve, without a further request', async () => {
    const { allow, decide, restored, restorer, redisReturns, settler } = setUp();
    const late = allow(1);
    redisReturns();
    decide(1);
    await until(() => restorer.givenBack === 1 && restorer.size === 0);
    late.report(40);
    await until(() => restorer.givenBack === 40);
    expect(restored.map(({ units }) => units)).toEqual([1, 39]);
    expect(settler.counts).toMatchObject({ settled: 1, failed: 0 });
  });

  it('reach Redis from a replica that gets no further request', async () => {
    const { allow, redis, restored } = setUp();
    allow(1).report(40);
    redis.isThere = true;
    await until(() => restored.length > 0);
    expect(restored.map(({ units }) => units)).toEqual([40]);
  });

  it('are not subtracted from what Redis has already: the reserve stands, and that is counted', async () => {
    const { allow, decide, restored, restorer, redisReturns, settler } = setUp();
    const late = allow(30);
    redisReturns();
    decide(1);
    await until(() => restorer.givenBack === 30 && restorer.size === 0);
    late.report(2);
    await settler.stop();
    expect(settler.counts).toMatchObject({ settled: 0, failed: 1 });
    expect([restorer.size, restored.length]).toEqual([0, 1]);
  });

  it('count only here where Redis may have counted the reserve', async () => {
    const { allow, redis, restorer, settler, decide } = setUp();
    redis.failure = new Error('Command timed out');
    allow(1).report(100);
    await settler.stop();
    expect(decide(1).kind).toBe('limited');
    expect(restorer.size).toBe(0);
    expect(settler.counts).toMatchObject({ settled: 0, failed: 1 });
  });

  it('count in no window but that of the request', async () => {
    const { allow, clock, decide, settler, restorer } = setUp();
    const late = allow(1);
    clock.advance(HOUR_MS);
    expect(usedIn(decide(1))).toEqual([1]);
    late.report(4000);
    await settler.stop();
    expect(usedIn(decide(1))).toEqual([2]);
    expect(settler.counts).toMatchObject({ settled: 1, failed: 0 });
    expect(restorer.size).toBe(1);
  });
});

describe('costs that a backend reports for requests that Redis decided, when it is away', () => {
  /** A request that Redis allowed with a reserve of 10, whose difference fails with this. */
  async function reportAfter(failure: Error, cost: number) {
    const gateway = setUp();
    gateway.redisReturns();
    const { report } = gateway.allow(10);
    gateway.redis.isThere = false;
    gateway.settling.failure = failure;
    report(cost);
    await until(() => gateway.settling.units.length > 0);
    return gateway;
  }

  it.each([
    ['more', 105, 95],
    ['less', 2, -8],
  ])(
    'are settled when it is back if they are %s than the reserve, without a further request',
    async (_, cost, units) => {
      const { settling, settler, restorer } = await reportAfter(new NotCounted('away'), cost);
      expect(settler.counts).toMatchObject({ settled: 0, failed: 0 });
      settling.failure = null;
      await until(() => settler.counts.settled === 1);
      expect(new Set(settling.units)).toEqual(new Set([units]));
      expect(restorer.size).toBe(0);
      const calls = settling.units.length;
      await settler.stop();
      expect(settling.units).toHaveLength(calls);
    },
  );

  it('count in the share of the replica meanwhile', async () => {
    const { decide } = await reportAfter(new NotCounted('away'), 105);
    expect(decide(6).kind).toBe('limited');
  });

  it('are sent once more before the process ends, and lost if that fails as well', async () => {
    const { settling, settler } = await reportAfter(new NotCounted('away'), 105);
    await settler.stop();
    expect(settling.units.length).toBeGreaterThan(1);
    expect(settler.counts).toMatchObject({ settled: 0, failed: 1 });
  });

  it('count only here where Redis may have counted them', async () => {
    const { decide, settling, settler } = await reportAfter(new Error('Command timed out'), 105);
    expect(decide(6).kind).toBe('limited');
    await settler.stop();
    expect(settling.units).toEqual([95]);
    expect(settler.counts).toMatchObject({ settled: 0, failed: 1 });
  });
});
