import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { windowEndMs } from '../../src/limiter/period.ts';
import type { CountedDecision, LimitSubject, RateLimiter } from '../../src/limiter/rate-limiter.ts';
import type { DecidedWindow } from '../../src/limiter/request-limits.ts';
import { ThresholdWatch } from '../../src/limiter/threshold-watch.ts';
import {
  decide,
  type FlatDecision,
  LIMITER_STORES,
  type LimiterStore,
  newKeyId,
  peek,
  quota,
  subject,
} from '../support/limiter-stores.ts';

const LARGEST_LIMIT = 999_999_999_999_999;

type Allowed = CountedDecision & { readonly remaining: number; readonly resetAtMs: number };
function allowed(decision: FlatDecision | undefined): Allowed {
  if (decision?.kind !== 'allowed') throw new Error(`not allowed: ${JSON.stringify(decision)}`);
  return decision as Allowed;
}

function limited(decision: FlatDecision | undefined): Allowed {
  if (decision?.kind !== 'limited') throw new Error(`not limited: ${JSON.stringify(decision)}`);
  return decision as Allowed;
}

function windowsOf(decision: FlatDecision | undefined): readonly DecidedWindow[] {
  if (decision === undefined || !('windows' in decision)) throw new Error('not counted');
  return decision.windows;
}

async function decideTimes(
  limiter: RateLimiter,
  asked: LimitSubject,
  times: number,
): Promise<FlatDecision[]> {
  const decisions: FlatDecision[] = [];
  for (let time = 0; time < times; time += 1) decisions.push(await decide(limiter, asked));
  return decisions;
}

interface Start {
  readonly keyId: string;
  /** By the store's time. */
  readonly startMs: number;
}

/** Decides for a new key, and again for another as long as that took `ms` of the store's time or more: a window may have ended in between. */
async function decideWithin(
  ms: number,
  { counters }: LimiterStore,
  decideAll: (start: Start) => Promise<readonly FlatDecision[]>,
): Promise<Start & { readonly decisions: readonly FlatDecision[] }> {
  for (;;) {
    const keyId = newKeyId();
    const { nowMs: startMs } = await peek(counters, keyId, quota(1, 'hour'));
    const decisions = await decideAll({ keyId, startMs });
    const { nowMs: endMs } = await peek(counters, keyId, quota(1, 'hour'));
    if (endMs < startMs + ms) return { keyId, startMs, decisions };
  }
}

/** By name. Open from the start, because Jest starts concurrent tests before all others: those that wait for the end of a window. */
const stores = new Map<string, LimiterStore>();
beforeAll(async () => {
  const opening = Object.entries(LIMITER_STORES).map(async ([name, open]) => stores.set(name, await open()));
  await Promise.all(opening);
});
afterAll(async () => {
  for (const store of stores.values()) await store.close();
});

function opened(name: string): { readonly store: LimiterStore; readonly limiter: RateLimiter } {
  const store = stores.get(name);
  const [limiter] = store?.limiters ?? [];
  if (store === undefined || limiter === undefined) throw new Error(`no limiter ${name}`);
  return { store, limiter };
}

describe.each(Object.keys(LIMITER_STORES))('a rate limiter that counts %s', (name) => {
  let store: LimiterStore;
  let limiter: RateLimiter;
  beforeAll(() => {
    ({ store, limiter } = opened(name));
  });
  /** Beside each other, where the time is not moved by a test. */
  const itInTime = name === 'in the process' ? it : it.concurrent;

  it('allows exactly the limit under concurrent requests over several replicas', async () => {
    const asked = subject(newKeyId(), { quota: quota(37, 'hour') });
    const limiterOf = (index: number) => store.limiters[index % store.limiters.length] ?? limiter;
    const decisions = await Promise.all(
      Array.from({ length: 100 }, (_, index) => decide(limiterOf(index), asked)),
    );
    const remaining = decisions.flatMap((decision) =>
      decision.kind === 'allowed' ? [decision.remaining ?? Number.NaN] : [],
    );
    expect(remaining.sort((one, other) => one - other)).toEqual(
      Array.from({ length: 37 }, (_, index) => index),
    );
    expect(decisions.filter(({ kind }) => kind === 'limited')).toHaveLength(63);
    expect(
      new Set(decisions.map((decision) => ('resetAtMs' in decision ? decision.resetAtMs : 0))).size,
    ).toBe(1);
  });

  itInTime('opens a window with the first request and ends it one period later', async () => {
    const { store, limiter } = opened(name);
    const asked = subject(newKeyId(), { quota: quota(3, 'second') });
    let lastResetAtMs = 0;
    for (let window = 0; window < 2; window += 1) {
      await store.reach(lastResetAtMs);
      const opening = allowed(await decide(limiter, asked));
      expect(opening).toMatchObject({ remaining: 2, degraded: false, resetAtMs: opening.nowMs + 1000 });
      expect(opening.nowMs).toBeGreaterThanOrEqual(lastResetAtMs);
      lastResetAtMs = opening.resetAtMs;
    }
  });

  it('opens calendar windows that end in the next month at the same time of day', async () => {
    const monthly = quota(3, 'month');
    const opening = allowed(await decide(limiter, subject(newKeyId(), { quota: monthly })));
    expect(opening.resetAtMs).toBe(windowEndMs(opening.nowMs, monthly.period));
  });

  it('does not count a limited request: a window never holds more than the limit', async () => {
    const asked = subject(newKeyId(), { quota: quota(2, 'hour') });
    const [, second, third, , fifth] = await decideTimes(limiter, asked, 5);
    expect(allowed(second).remaining).toBe(0);
    expect(limited(third).resetAtMs).toBe(allowed(second).resetAtMs);
    expect(limited(fifth).degraded).toBe(false);
    expect(await peek(store.counters, asked.keyId, quota(2, 'hour'))).toMatchObject({ used: 2 });
  });

  it('applies a raised or lowered limit at once, with count and reset kept', async () => {
    const keyId = newKeyId();
    const opening = allowed(await decide(limiter, subject(keyId, { quota: quota(2, 'hour') })));
    await decide(limiter, subject(keyId, { quota: quota(2, 'hour') }));
    limited(await decide(limiter, subject(keyId, { quota: quota(2, 'hour') })));
    const raised = allowed(await decide(limiter, subject(keyId, { quota: quota(5, '60 minutes') })));
    expect(raised).toMatchObject({ remaining: 2, resetAtMs: opening.resetAtMs });
    expect(limited(await decide(limiter, subject(keyId, { quota: quota(1, 'PT1H') }))).resetAtMs).toBe(
      opening.resetAtMs,
    );
    expect(allowed(await decide(limiter, subject(keyId, { quota: quota(5, 'hour') }))).remaining).toBe(1);
  });

  it('counts each period in a separate window, which a change back finds again', async () => {
    const keyId = newKeyId();
    const opened = new Map<string, number>();
    for (const period of ['hour', 'day', 'month']) {
      const opening = allowed(await decide(limiter, subject(keyId, { quota: quota(3, period) })));
      expect(opening.remaining).toBe(2);
      expect(opening.resetAtMs).toBe(windowEndMs(opening.nowMs, quota(3, period).period));
      opened.set(period, opening.resetAtMs);
    }
    for (const [period, resetAtMs] of opened) {
      const again = allowed(await decide(limiter, subject(keyId, { quota: quota(3, period) })));
      expect(again).toMatchObject({ remaining: 1, resetAtMs });
    }
  });

  it('allows a request only if every enforced window has room, or counts it nowhere', async () => {
    const keyId = newKeyId();
    const limits = [
      quota(100, 'hour'),
      quota(3, 'day', { id: 'few' }),
      quota(1, 'week', { id: 'next', mode: 'shadow' }),
    ];
    const decisions = await decideTimes(limiter, subject(keyId, { limits }), 5);
    expect(decisions.map(({ kind }) => kind)).toEqual([
      'allowed',
      'allowed',
      'allowed',
      'limited',
      'limited',
    ]);
    const { counters } = await store.counters.read({ keyId, limits, customerId: '' });
    expect(counters.map(({ used }) => used)).toEqual([3, 3, 1]);
    expect(windowsOf(decisions[4]).map(({ isExceeded }) => isExceeded)).toEqual([false, true, true]);
    expect(windowsOf(decisions[1]).map(({ isExceeded }) => isExceeded)).toEqual([false, false, true]);
  });

  it('is exact for three windows under concurrent requests of several replicas', async () => {
    const keyId = newKeyId();
    const limits = [quota(70, 'hour'), quota(53, 'day', { id: 'day' }), quota(61, 'month', { id: 'month' })];
    const asked = subject(keyId, { limits });
    const limiterOf = (index: number) => store.limiters[index % store.limiters.length] ?? limiter;
    const decisions = await Promise.all(
      Array.from({ length: 300 }, (_, index) => decide(limiterOf(index), asked)),
    );
    expect(decisions.filter(({ kind }) => kind === 'allowed')).toHaveLength(53);
    const { counters } = await store.counters.read({ keyId, limits, customerId: '' });
    expect(counters.map(({ used }) => used)).toEqual([53, 53, 53]);
  });

  it('takes a cost out of every window, and still allows what is cheaper or free', async () => {
    const keyId = newKeyId();
    const limits = [quota(10, 'hour'), quota(7, 'day', { id: 'day' })];
    const ask = (cost: number) => decide(limiter, subject(keyId, { limits, cost }));
    expect(allowed(await ask(6)).remaining).toBe(1);
    limited(await ask(2));
    expect(allowed(await ask(0)).remaining).toBe(1);
    expect(allowed(await ask(1)).remaining).toBe(0);
    limited(await ask(1));
    expect(allowed(await ask(0)).remaining).toBe(0);
    const { counters } = await store.counters.read({ keyId, limits, customerId: '' });
    expect(counters.map(({ used }) => used)).toEqual([7, 7]);
  });

  it('opens no window for a request that is free or limited', async () => {
    const keyId = newKeyId();
    const limits = [quota(10, 'hour'), quota(2, 'day', { id: 'day' })];
    // Copies that are no longer fresh once the first one has installed the version.
    for (const [cost, fresh] of [
      [0, true],
      [0, false],
      [3, false],
    ] as const)
      await decide(limiter, subject(keyId, { limits, cost, fresh }));
    const { counters } = await store.counters.read({ keyId, limits, customerId: '' });
    expect(counters.map(({ resetAtMs }) => resetAtMs)).toEqual([null, null]);
  });

  itInTime('gives more room for the present window only, also before it is open', async () => {
    const { store, limiter } = opened(name);
    const limit = quota(1, '3 seconds');
    const { keyId, decisions } = await decideWithin(3000, store, async ({ keyId }) => {
      await store.counters.grant({ keyId, limits: [limit], customerId: '', units: 2 });
      return decideTimes(limiter, subject(keyId, { quota: limit }), 4);
    });
    const [first, second, third, fourth] = decisions;
    expect(allowed(first).remaining).toBe(2);
    expect([allowed(second).remaining, allowed(third).remaining]).toEqual([1, 0]);
    await store.reach(limited(fourth).resetAtMs);
    expect(allowed(await decide(limiter, subject(keyId, { quota: limit }))).remaining).toBe(0);
  });

  it('gives the room of one operation once, and that of another again', async () => {
    const keyId = newKeyId();
    const limits = [quota(1, 'hour'), quota(1, 'day', { id: 'day' })];
    const grant = (operationId: string, some = limits) =>
      store.counters.grant({ keyId, limits: some, customerId: '', units: 2, operationId });
    await grant('first', limits.slice(0, 1));
    await Promise.all([grant('first'), grant('first')]);
    await grant('second');
    const { counters } = await store.counters.read({ keyId, limits, customerId: '' });
    expect(counters.map(({ granted }) => granted)).toEqual([4, 4]);
    const other = newKeyId();
    await store.counters.grant({ keyId: other, limits, customerId: '', units: 2, operationId: 'first' });
    const { counters: others } = await store.counters.read({ keyId: other, limits, customerId: '' });
    expect(others.map(({ granted }) => granted)).toEqual([2, 2]);
  });

  it('gives the room of one operation to one customer, and that of another operation to another', async () => {
    const keyId = newKeyId();
    const limits = [quota(1, 'hour', { id: 'tenant', per: 'customer' })];
    const granted = async (customerId: string) =>
      (await store.counters.read({ keyId, limits, customerId })).counters.map((counter) => counter.granted);
    for (const customerId of ['acme', 'acme', 'globex'])
      await store.counters.grant({ keyId, limits, customerId, units: 2, operationId: customerId });
    expect([await granted('acme'), await granted('globex')]).toEqual([[2], [2]]);
  });

  it('gives no room to a key that was deleted meanwhile', async () => {
    const keyId = newKeyId();
    const limits = [quota(1, 'hour')];
    await store.versions.retire([{ keyId }]);
    await store.counters.grant({ keyId, limits, customerId: '', units: 2 });
    const { counters } = await store.counters.read({ keyId, limits, customerId: '' });
    expect(counters).toMatchObject([{ used: 0, granted: 0, resetAtMs: null }]);
  });

  itInTime('holds an override until its end, and the limit of the plan from then on', async () => {
    const { store, limiter } = opened(name);
    const raised = ({ keyId, startMs }: Start) =>
      subject(keyId, { quota: quota(3, 'hour', { baseLimit: 2, endsAtMs: startMs + 2500 }) });
    const { decisions, ...start } = await decideWithin(2500, store, (begun) =>
      decideTimes(limiter, raised(begun), 3),
    );
    expect(allowed(decisions[2])).toMatchObject({ remaining: 0, windows: [{ quota: 3 }] });
    await store.reach(start.startMs + 2500);
    expect(limited(await decide(limiter, raised(start)))).toMatchObject({ windows: [{ quota: 2, used: 3 }] });
  });

  itInTime('settles a cost in the windows in which it was counted, while they are the same', async () => {
    const { store, limiter } = opened(name);
    const keyId = newKeyId();
    const short = quota(50, 'second', { id: 'short' });
    const limits = [quota(100, 'hour'), short, quota(9, 'hour', { id: 'tenant', per: 'customer' })];
    const asked = subject(keyId, { limits, cost: 2, customerId: 'acme' });
    const { nowMs: decidedAtMs, windows } = allowed(await decide(limiter, asked));
    const difference = { keyId, customerId: 'acme', decidedAtMs, windows };
    const used = async () =>
      (await store.counters.read({ keyId, limits, customerId: 'acme' })).counters.map(
        (counter) => counter.used,
      );
    const { used: counts, nowMs } = await store.counters.settle({ ...difference, units: 40 });
    expect([counts[0], counts[2]]).toEqual([42, 42]);
    expect(nowMs).toBeLessThan(windows[0]?.resetAtMs ?? 0);
    const settled = await used();
    expect([settled[0], settled[2]]).toEqual([42, 42]);
    limited(await decide(limiter, { ...asked, cost: 1 }));
    await store.reach(windows[1]?.resetAtMs ?? 0);
    const reduced = await store.counters.settle({ ...difference, units: -41 });
    expect(reduced.used).toEqual([1, undefined, 1]);
    expect(await used()).toEqual([1, 0, 1]);
    await store.counters.reset({ keyId, limits, customerId: null });
    await store.counters.settle({ ...difference, units: 5 });
    expect(await used()).toEqual([0, 0, 0]);
  });

  it('settles no cost in a window that opened after a reset, however soon', async () => {
    const { store, limiter } = opened(name);
    const keyId = newKeyId();
    const limits = [quota(100, 'hour'), quota(100, 'month', { id: 'tenant', per: 'customer' })];
    const customer = { keyId, limits, customerId: 'acme' };
    const { nowMs: decidedAtMs, windows } = allowed(
      await decide(limiter, subject(keyId, { ...customer, cost: 50 })),
    );
    await store.reach(decidedAtMs + 1);
    await store.counters.reset(customer);
    allowed(await decide(limiter, subject(keyId, customer)));
    const settled = await store.counters.settle({ ...customer, decidedAtMs, windows, units: -50 });
    expect(settled.used).toEqual([undefined, undefined]);
    const { counters } = await store.counters.read(customer);
    expect(counters.map(({ used }) => used)).toEqual([1, 1]);
  });

  it('settles no cost of a key that was deleted meanwhile, not even in a window that is still open', async () => {
    const keyId = newKeyId();
    const limits = [quota(100, 'hour'), quota(9, 'hour', { id: 'tenant', per: 'customer' })];
    const { nowMs: decidedAtMs, windows } = allowed(
      await decide(limiter, subject(keyId, { limits, cost: 2, customerId: 'acme' })),
    );
    const used = async () =>
      (await store.counters.read({ keyId, limits, customerId: 'acme' })).counters.map(
        (counter) => counter.used,
      );
    await store.versions.retire([{ keyId }]);
    const before = await used();
    const difference = { keyId, customerId: 'acme', decidedAtMs, windows, units: 40 };
    expect((await store.counters.settle(difference)).used).toEqual([undefined, undefined]);
    expect(await used()).toEqual(before);
  });

  it('says once that a window passes a threshold, until a reset, a grant or another limit', async () => {
    const { store, limiter } = opened(name);
    const keyId = newKeyId();
    const tenant = quota(10, 'hour', { id: 'tenant', per: 'customer' });
    const asked = subject(keyId, { limits: [tenant], customerId: 'acme', cost: 8 });
    const passes = async (threshold: number, limit = 10): Promise<readonly number[]> => {
      const { resetAtMs = 0, nowMs = 0 } = allowed(await decide(limiter, { ...asked, cost: 0 }));
      const passed = {
        keyId,
        limit: tenant,
        customerId: 'acme',
        threshold,
        quota: limit,
        used: 8,
        resetAtMs,
      };
      const calls = Array.from({ length: 3 }, () => store.counters.passOnce({ ...passed, atMs: nowMs }));
      return (await Promise.all(calls)).filter(Boolean).map(() => threshold);
    };
    await decide(limiter, asked);
    expect([await passes(80), await passes(80), await passes(100)]).toEqual([[80], [], [100]]);
    expect([await passes(80, 9), await passes(80, 9)]).toEqual([[80], []]);
    const customer = { keyId, limits: [tenant], customerId: 'acme' };
    await store.counters.grant({ ...customer, units: 3 });
    expect([await passes(80, 9), await passes(80, 9)]).toEqual([[80], []]);
    await store.counters.reset(customer);
    await decide(limiter, asked);
    expect([await passes(80, 9), await passes(80, 9)]).toEqual([[80], []]);
  });

  it('shows each pass of a threshold to one of the requests that are decided together', async () => {
    const { store } = opened(name);
    const passed: string[] = [];
    const watch = new ThresholdWatch({
      ...{ thresholds: [50, 80, 100], counters: store.counters },
      onPassed: ({ keyId, threshold, used }) => passed.push(`${keyId} ${threshold} ${used >= threshold}`),
      onLost: () => passed.push('lost'),
    });
    const keyIds = [newKeyId(), newKeyId()];
    // In one turn each replica sends them in one call.
    const decisions = store.limiters.flatMap((replica) =>
      Array.from({ length: 120 }, async (_, index) => {
        const asked = subject(keyIds[index % 2] ?? '', { quota: quota(100, 'hour'), cost: 1 + (index % 3) });
        const decision = await decide(replica, asked);
        if (decision.kind !== 'allowed') return;
        watch.note({ ...asked, ...decision, units: asked.cost });
      }),
    );
    await Promise.all(decisions);
    const expected = keyIds.flatMap((keyId) =>
      [50, 80, 100].map((threshold) => `${keyId} ${threshold} true`),
    );
    expect(passed.toSorted()).toEqual(expected.toSorted());
  });

  it.each(['acme', '__other__'])('closes the window of one customer at a reset: %s', async (customerId) => {
    const { store, limiter } = opened(name);
    const keyId = newKeyId();
    const limits = [quota(1, 'day', { id: 'tenant', per: 'customer' })];
    const ask = async (customer: string) =>
      (await decide(limiter, subject(keyId, { limits, customerId: customer }))).kind;
    expect([await ask(customerId), await ask('else')]).toEqual(['allowed', 'allowed']);
    expect([await ask(customerId), await ask('else')]).toEqual(['limited', 'limited']);
    await store.counters.reset({ keyId, limits, customerId });
    expect([await ask(customerId), await ask('else')]).toEqual(['allowed', 'limited']);
  });

  it('bounds the windows of customers: the 10 001st and later ones share one', async () => {
    const keyId = newKeyId();
    const tenant = quota(2, 'day', { id: 'tenant', per: 'customer' });
    const ask = (customerId: string) => decide(limiter, subject(keyId, { limits: [tenant], customerId }));
    for (let start = 0; start < 10_000; start += 1000) {
      await Promise.all(Array.from({ length: 1000 }, (_, index) => ask(`customer ${start + index}`)));
    }
    expect(windowsOf(await ask('customer 9999'))).toMatchObject([{ used: 2, isShared: false }]);
    expect(windowsOf(await ask('one more'))).toMatchObject([{ used: 1, isShared: true }]);
    expect(windowsOf(await ask('and another'))).toMatchObject([{ used: 2, isShared: true }]);
    expect((await ask('a third')).kind).toBe('limited');
    expect(windowsOf(await ask('customer 0'))).toMatchObject([{ used: 2, isShared: false }]);
    const { counters } = await store.counters.read({ keyId, limits: [tenant], customerId: 'a fourth' });
    expect(counters).toMatchObject([{ used: 2 }]);
    await store.counters.reset({ keyId, limits: [tenant], customerId: null });
    expect(windowsOf(await ask('a third'))).toMatchObject([{ used: 1, isShared: false }]);
  });

  it('counts each key for itself', async () => {
    const one = subject(newKeyId(), { quota: quota(1, 'hour') });
    const other = subject(newKeyId(), { quota: quota(1, 'hour') });
    allowed(await decide(limiter, one));
    allowed(await decide(limiter, other));
    limited(await decide(limiter, one));
  });

  it('keeps the largest limit exact', async () => {
    const asked = subject(newKeyId(), { quota: quota(LARGEST_LIMIT, '366 days') });
    expect(allowed(await decide(limiter, asked)).remaining).toBe(LARGEST_LIMIT - 1);
    expect(allowed(await decide(limiter, asked)).remaining).toBe(LARGEST_LIMIT - 2);
  });

  it('allows everything without a quota, once the version is current', async () => {
    const keyId = newKeyId();
    expect(await decide(limiter, subject(keyId, { quota: null, fresh: false }))).toEqual({ kind: 'stale' });
    expect(await decide(limiter, subject(keyId, { quota: null }))).toEqual({
      kind: 'unlimited',
      degraded: false,
    });
    expect(await peek(store.counters, keyId, quota(5, 'hour'))).toMatchObject({ used: 0, resetAtMs: null });
  });

  it('shows an idle key as unused with no reset, and peeks without counting', async () => {
    const keyId = newKeyId();
    const hourly = quota(5, 'hour');
    const idle = await peek(store.counters, keyId, hourly);
    expect(idle).toEqual({ used: 0, resetAtMs: null, nowMs: idle.nowMs });
    expect(idle.nowMs).toBeGreaterThan(Date.UTC(2026, 0));

    const { resetAtMs } = allowed(await decide(limiter, subject(keyId, { quota: hourly })));
    for (let time = 0; time < 3; time += 1) {
      expect(await peek(store.counters, keyId, hourly)).toMatchObject({ used: 1, resetAtMs });
    }
    expect(await peek(store.counters, keyId, quota(5, 'day'))).toMatchObject({ used: 0, resetAtMs: null });
  });

  itInTime('shows a window that has ended as idle', async () => {
    const { store, limiter } = opened(name);
    const keyId = newKeyId();
    const { resetAtMs } = allowed(await decide(limiter, subject(keyId, { quota: quota(1, 'second') })));
    await store.reach(resetAtMs);
    expect(await peek(store.counters, keyId, quota(1, 'second'))).toMatchObject({ used: 0, resetAtMs: null });
  });
});
