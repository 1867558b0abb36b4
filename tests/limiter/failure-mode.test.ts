import { describe, expect, it } from '@jest/globals';
import { CircuitOpen } from '../../src/limiter/circuit-breaker.ts';
import type { UncountedRequests } from '../../src/limiter/count-restorer.ts';
import { type FailureMode, FailureModeLimiter } from '../../src/limiter/failure-mode.ts';
import { InProcessRateLimiter } from '../../src/limiter/in-process-rate-limiter.ts';
import type { Decision, LimitSubject, RateLimiter } from '../../src/limiter/rate-limiter.ts';
import { UncountedLedger } from '../../src/limiter/uncounted-ledger.ts';
import { WindowTable } from '../../src/limiter/window-table.ts';
import { quota, subject } from '../support/limiter-stores.ts';
import { ManualClock } from '../support/manual-clock.ts';

function setUp(mode: FailureMode, cause: Error = new CircuitOpen()) {
  const clock = new ManualClock(Date.UTC(2026, 0));
  const answers: { inner: Decision; liveReplicas: number } = {
    inner: { kind: 'unavailable', cause },
    liveReplicas: 3,
  };
  const inner: RateLimiter = {
    decide: (_subject: LimitSubject, decided: (decision: Decision) => void) => decided(answers.inner),
    peek: async () => ({ used: 7, resetAtMs: null, nowMs: 0 }),
  };
  const uncounted: string[] = [];
  let shared = 0;
  const limiter = new FailureModeLimiter(inner, {
    mode,
    clock,
    local: new InProcessRateLimiter(new WindowTable(), clock),
    liveReplicas: () => answers.liveReplicas,
    onUncounted: (keyId) => uncounted.push(keyId),
    onShared: () => {
      shared += 1;
    },
  });
  const ask = (fields: Partial<LimitSubject> = {}): Decision => {
    const decisions: Decision[] = [];
    limiter.decide(subject('key_1', { fresh: false, quota: quota(10, 'hour'), ...fields }), (decision) =>
      decisions.push(decision),
    );
    const [decision] = decisions;
    if (decision === undefined || decisions.length > 1) throw new Error(`decided ${decisions.length} times`);
    return decision;
  };
  return { clock, answers, limiter, ask, uncounted, sharedCalls: () => shared };
}

describe('the failure mode', () => {
  it('local admits the limit divided by the live replicas, rounded up, on the copy at hand', () => {
    const { ask, limiter, uncounted } = setUp('local');
    const kinds = Array.from({ length: 6 }, () => ask().kind);
    expect(kinds).toEqual(['admitted', 'admitted', 'admitted', 'admitted', 'denied', 'denied']);
    expect(ask({ version: '9.9' })).toMatchObject({ kind: 'denied', degraded: true });
    expect(limiter.degraded).toEqual({ admitted: 4, denied: 3, unlimited: 0, stale: 0, unavailable: 0 });
    expect(limiter.shared.unavailable).toBe(7);
    expect(uncounted).toHaveLength(4);
  });

  it('local follows the number of live replicas, and admits one request at least', () => {
    const { ask, answers } = setUp('local');
    answers.liveReplicas = 50;
    expect(ask()).toMatchObject({ kind: 'admitted', remaining: 0, degraded: true });
    expect(ask().kind).toBe('denied');
    answers.liveReplicas = 1;
    expect(ask()).toMatchObject({ kind: 'admitted', remaining: 8 });
  });

  it('local opens a new window when the old one ends', () => {
    const { ask, clock, answers } = setUp('local');
    answers.liveReplicas = 10;
    expect(ask().kind).toBe('admitted');
    expect(ask().kind).toBe('denied');
    clock.advance(3_600_000);
    expect(ask().kind).toBe('admitted');
  });

  it('notes as uncounted only what the breaker refused: a call that failed may have been counted', () => {
    const { ask, uncounted } = setUp('local', new Error('Command timed out'));
    expect(ask().kind).toBe('admitted');
    expect(uncounted).toEqual([]);
  });

  it('local admits a key without a quota', () => {
    expect(setUp('local').ask({ quota: null })).toEqual({ kind: 'unlimited', degraded: true });
  });

  it('open admits everything, degraded', () => {
    const { ask, limiter } = setUp('open');
    expect(ask()).toEqual({ kind: 'unlimited', degraded: true });
    expect(limiter.degraded.unlimited).toBe(1);
  });

  it('closed passes on that nothing was decided', () => {
    const { ask, limiter } = setUp('closed');
    expect(ask()).toEqual({ kind: 'unavailable', cause: expect.any(CircuitOpen) });
    expect(limiter.degraded.unavailable).toBe(1);
  });

  it.each<FailureMode>(['local', 'open', 'closed'])(
    '%s leaves every answer of the shared limiter alone',
    (mode) => {
      const { ask, answers, limiter, sharedCalls } = setUp(mode);
      const decisions: Decision[] = [
        { kind: 'admitted', remaining: 1, resetAtMs: 2, nowMs: 1, degraded: false },
        { kind: 'denied', resetAtMs: 2, nowMs: 1, degraded: false },
        { kind: 'unlimited', degraded: false },
        { kind: 'stale' },
      ];
      for (const decision of decisions) {
        answers.inner = decision;
        expect(ask()).toBe(decision);
      }
      expect(limiter.shared).toEqual({ admitted: 1, denied: 1, unlimited: 1, stale: 1, unavailable: 0 });
      expect(sharedCalls()).toBe(4);
    },
  );

  it.each<FailureMode>(['local', 'open', 'closed'])(
    '%s is degraded from its first decision on, until the shared limiter decides again',
    (mode) => {
      const { ask, answers, limiter } = setUp(mode, new Error('Command timed out'));
      expect(limiter.isDegraded).toBe(false);
      const unavailable = answers.inner;
      ask();
      expect(limiter.isDegraded).toBe(true);
      answers.inner = { kind: 'stale' };
      ask();
      expect(limiter.isDegraded).toBe(false);
      answers.inner = unavailable;
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

  it('peeks at the shared count', async () => {
    expect(await setUp('local').limiter.peek('key_1', quota(1, 'hour'))).toMatchObject({ used: 7 });
  });
});

describe('the ledger of uncounted requests', () => {
  const hourly = quota(10, 'hour');

  function ledger(capacity = 10, restore: (requests: UncountedRequests) => Promise<void> = async () => {}) {
    const clock = new ManualClock(1000);
    const restored: UncountedRequests[] = [];
    const restorer = {
      restore: async (requests: UncountedRequests) => {
        restored.push(requests);
        await restore(requests);
      },
    };
    return { clock, restored, ledger: new UncountedLedger({ restorer, clock, capacity }) };
  }

  it('gives back once what was admitted in windows that are still open', async () => {
    const { clock, restored, ledger: uncounted } = ledger();
    uncounted.note('ended', hourly, 1500);
    uncounted.note('open', hourly, 1500);
    uncounted.note('open', hourly, 9000);
    uncounted.note('open', hourly, 9000);
    clock.advance(600);
    await uncounted.giveBack();
    await uncounted.giveBack();
    expect(restored).toEqual([{ keyId: 'open', quota: hourly, count: 2 }]);
    expect(uncounted.givenBack).toBe(2);
    expect(uncounted.size).toBe(0);
  });

  it('does not try again what failed, and never rejects', async () => {
    const { restored, ledger: uncounted } = ledger(10, () => Promise.reject(new Error('away')));
    uncounted.note('key', hourly, 9000);
    await uncounted.giveBack();
    await uncounted.giveBack();
    expect(restored).toHaveLength(1);
    expect(uncounted.givenBack).toBe(0);
  });

  it('is bounded', () => {
    const { ledger: uncounted } = ledger(2);
    for (const keyId of ['a', 'b', 'c', 'a']) uncounted.note(keyId, hourly, 9000);
    expect(uncounted.size).toBe(2);
  });
});
