import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { windowEndMs } from '../../src/limiter/period.ts';
import type { Decision, LimitSubject, RateLimiter } from '../../src/limiter/rate-limiter.ts';
import {
  decide,
  LIMITER_STORES,
  type LimiterStore,
  newKeyId,
  quota,
  subject,
} from '../support/limiter-stores.ts';

const LARGEST_LIMIT = 999_999_999_999_999;

type Admitted = Decision & { kind: 'admitted' };
type Denied = Decision & { kind: 'denied' };

function admitted(decision: Decision | undefined): Admitted {
  if (decision?.kind !== 'admitted') throw new Error(`not admitted: ${JSON.stringify(decision)}`);
  return decision;
}

function denied(decision: Decision | undefined): Denied {
  if (decision?.kind !== 'denied') throw new Error(`not denied: ${JSON.stringify(decision)}`);
  return decision;
}

async function decideTimes(limiter: RateLimiter, asked: LimitSubject, times: number): Promise<Decision[]> {
  const decisions: Decision[] = [];
  for (let time = 0; time < times; time += 1) decisions.push(await decide(limiter, asked));
  return decisions;
}

describe.each(Object.entries(LIMITER_STORES))('a rate limiter that counts %s', (_name, open) => {
  let store: LimiterStore;
  let limiter: RateLimiter;

  beforeAll(async () => {
    store = await open();
    const [first] = store.limiters;
    if (first === undefined) throw new Error('no limiter');
    limiter = first;
  });
  afterAll(() => store.close());

  it('admits exactly the limit under concurrent requests over several replicas', async () => {
    const asked = subject(newKeyId(), { quota: quota(37, 'hour') });
    const limiterOf = (index: number) => store.limiters[index % store.limiters.length] ?? limiter;
    const decisions = await Promise.all(
      Array.from({ length: 100 }, (_, index) => decide(limiterOf(index), asked)),
    );
    const remaining = decisions.flatMap((decision) =>
      decision.kind === 'admitted' ? [decision.remaining] : [],
    );
    expect(remaining.sort((one, other) => one - other)).toEqual(
      Array.from({ length: 37 }, (_, index) => index),
    );
    expect(decisions.filter(({ kind }) => kind === 'denied')).toHaveLength(63);
    expect(
      new Set(decisions.map((decision) => ('resetAtMs' in decision ? decision.resetAtMs : 0))).size,
    ).toBe(1);
  });

  it('opens a window with the first request, ends it one period later, and then opens the next', async () => {
    const asked = subject(newKeyId(), { quota: quota(3, 'second') });
    let lastResetAtMs = 0;
    for (let window = 0; window < 3; window += 1) {
      const opening = admitted(await decide(limiter, asked));
      expect(opening).toMatchObject({ remaining: 2, degraded: false, resetAtMs: opening.nowMs + 1000 });
      expect(opening.nowMs).toBeGreaterThanOrEqual(lastResetAtMs);
      lastResetAtMs = opening.resetAtMs;
      await store.reach(lastResetAtMs);
    }
  });

  it('opens calendar windows that end in the next month at the same time of day', async () => {
    const monthly = quota(3, 'month');
    const opening = admitted(await decide(limiter, subject(newKeyId(), { quota: monthly })));
    expect(opening.resetAtMs).toBe(windowEndMs(opening.nowMs, monthly.period));
  });

  it('does not count a denied request, so that the window never holds more than the limit', async () => {
    const asked = subject(newKeyId(), { quota: quota(2, 'hour') });
    const [, second, third, , fifth] = await decideTimes(limiter, asked, 5);
    expect(admitted(second).remaining).toBe(0);
    expect(denied(third).resetAtMs).toBe(admitted(second).resetAtMs);
    expect(denied(fifth).degraded).toBe(false);
    expect(await limiter.peek(asked.keyId, quota(2, 'hour'))).toMatchObject({ used: 2 });
  });

  it('lets a raised limit help at once, and a lowered one hold at once, with count and reset kept', async () => {
    const keyId = newKeyId();
    const opening = admitted(await decide(limiter, subject(keyId, { quota: quota(2, 'hour') })));
    await decide(limiter, subject(keyId, { quota: quota(2, 'hour') }));
    denied(await decide(limiter, subject(keyId, { quota: quota(2, 'hour') })));
    const raised = admitted(await decide(limiter, subject(keyId, { quota: quota(5, '60 minutes') })));
    expect(raised).toMatchObject({ remaining: 2, resetAtMs: opening.resetAtMs });
    expect(denied(await decide(limiter, subject(keyId, { quota: quota(1, 'PT1H') }))).resetAtMs).toBe(
      opening.resetAtMs,
    );
    expect(admitted(await decide(limiter, subject(keyId, { quota: quota(5, 'hour') }))).remaining).toBe(1);
  });

  it('opens a new window when the period changes, also when it changes back', async () => {
    const keyId = newKeyId();
    for (const period of ['hour', 'day', 'hour', 'month']) {
      const asked = subject(keyId, { quota: quota(3, period) });
      const opening = admitted(await decide(limiter, asked));
      expect(opening.remaining).toBe(2);
      expect(opening.resetAtMs).toBe(windowEndMs(opening.nowMs, quota(3, period).period));
      expect(admitted(await decide(limiter, asked))).toMatchObject({
        remaining: 1,
        resetAtMs: opening.resetAtMs,
      });
    }
  });

  it('counts each key for itself', async () => {
    const one = subject(newKeyId(), { quota: quota(1, 'hour') });
    const other = subject(newKeyId(), { quota: quota(1, 'hour') });
    admitted(await decide(limiter, one));
    admitted(await decide(limiter, other));
    denied(await decide(limiter, one));
  });

  it('keeps the largest limit exact', async () => {
    const asked = subject(newKeyId(), { quota: quota(LARGEST_LIMIT, '366 days') });
    expect(admitted(await decide(limiter, asked)).remaining).toBe(LARGEST_LIMIT - 1);
    expect(admitted(await decide(limiter, asked)).remaining).toBe(LARGEST_LIMIT - 2);
  });

  it('admits everything without a quota, once the version is current', async () => {
    const keyId = newKeyId();
    expect(await decide(limiter, subject(keyId, { quota: null, fresh: false }))).toEqual({ kind: 'stale' });
    expect(await decide(limiter, subject(keyId, { quota: null }))).toEqual({
      kind: 'unlimited',
      degraded: false,
    });
    expect(await limiter.peek(keyId, quota(5, 'hour'))).toMatchObject({ used: 0, resetAtMs: null });
  });

  it('shows an idle key as unused with no reset, and peeks without counting', async () => {
    const keyId = newKeyId();
    const hourly = quota(5, 'hour');
    const idle = await limiter.peek(keyId, hourly);
    expect(idle).toEqual({ used: 0, resetAtMs: null, nowMs: idle.nowMs });
    expect(idle.nowMs).toBeGreaterThan(Date.UTC(2026, 0));

    const { resetAtMs } = admitted(await decide(limiter, subject(keyId, { quota: hourly })));
    for (let time = 0; time < 3; time += 1) {
      expect(await limiter.peek(keyId, hourly)).toMatchObject({ used: 1, resetAtMs });
    }
    expect(await limiter.peek(keyId, quota(5, 'day'))).toMatchObject({ used: 0, resetAtMs: null });
  });

  it('shows a window that has ended as idle', async () => {
    const keyId = newKeyId();
    const { resetAtMs } = admitted(await decide(limiter, subject(keyId, { quota: quota(1, 'second') })));
    await store.reach(resetAtMs);
    expect(await limiter.peek(keyId, quota(1, 'second'))).toMatchObject({ used: 0, resetAtMs: null });
  });
});
