import { describe, expect, it } from '@jest/globals';
import { LocalDenials } from '../../src/limiter/local-denials.ts';
import type { Decision, LimitSubject, RateLimiter } from '../../src/limiter/rate-limiter.ts';
import type { ChangeFeed } from '../../src/limiter/record-versions.ts';
import { quota, subject } from '../support/limiter-stores.ts';
import { ManualClock } from '../support/manual-clock.ts';

const STORE_NOW = 5_000_000;

/** Answers with what it is told to, and counts how often it was asked. */
class ScriptedLimiter implements RateLimiter {
  answer: Decision = denial();
  asked = 0;
  /** What happens between question and answer. */
  meanwhile: () => void = () => {};
  decide(_subject: LimitSubject, decided: (decision: Decision) => void): void {
    this.asked += 1;
    this.meanwhile();
    decided(this.answer);
  }
  peek(): never {
    throw new Error('not asked for');
  }
}

class ManualFeed implements ChangeFeed {
  change: (keyId: string) => void = () => {};
  reset: () => void = () => {};
  onChange(changed: (keyId: string) => void): void {
    this.change = changed;
  }
  onReset(reset: () => void): void {
    this.reset = reset;
  }
}

function denial(fields: { resetInMs?: number; degraded?: boolean } = {}): Decision & { kind: 'denied' } {
  const { resetInMs = 60_000, degraded = false } = fields;
  return { kind: 'denied', nowMs: STORE_NOW, resetAtMs: STORE_NOW + resetInMs, degraded };
}

function setUp(capacity = 100) {
  const clock = new ManualClock(0);
  const feed = new ManualFeed();
  const inner = new ScriptedLimiter();
  const limiter = new LocalDenials(inner, { clock, changes: feed, capacity });
  const ask = (asked: LimitSubject = subject('key_1', { fresh: false })): Decision => {
    let answer: Decision | undefined;
    limiter.decide(asked, (decision) => {
      answer = decision;
    });
    if (answer === undefined) throw new Error('not decided');
    return answer;
  };
  return { clock, feed, inner, limiter, ask };
}

describe('local denials', () => {
  it('repeat a denial without asking, at the time that the store has by now', () => {
    const { clock, inner, limiter, ask } = setUp();
    expect(ask()).toEqual(denial());
    clock.advance(400);
    expect(ask()).toEqual({ ...denial(), nowMs: STORE_NOW + 400 });
    expect(inner.asked).toBe(1);
    expect(limiter.answered).toBe(1);
  });

  it('ask again after one second', () => {
    const { clock, inner, ask } = setUp();
    ask();
    clock.advance(999);
    ask();
    expect(inner.asked).toBe(1);
    clock.advance(1);
    ask();
    expect(inner.asked).toBe(2);
  });

  it('ask again from the moment of the reset on', () => {
    const { clock, inner, ask } = setUp();
    inner.answer = denial({ resetInMs: 300 });
    ask();
    clock.advance(299);
    ask();
    expect(inner.asked).toBe(1);
    clock.advance(1);
    ask();
    expect(inner.asked).toBe(2);
  });

  it.each([
    ['version', { version: '1.1' }],
    ['limit', { quota: quota(11, 'hour') }],
    ['period', { quota: quota(10, 'day') }],
    ['plan, to none', { quota: null }],
  ])('ask again after a change of %s', (_what, fields) => {
    const { inner, ask } = setUp();
    ask();
    ask(subject('key_1', { fresh: false, ...fields }));
    expect(inner.asked).toBe(2);
  });

  it('forget a key that changed, and all keys when the feed was interrupted', () => {
    const { feed, inner, limiter, ask } = setUp();
    ask();
    feed.change('key_2');
    ask();
    expect(inner.asked).toBe(1);
    feed.change('key_1');
    ask();
    expect(inner.asked).toBe(2);
    feed.reset();
    expect(limiter.size).toBe(0);
  });

  it('learn nothing from an answer that a change overtook', () => {
    const { feed, inner, limiter, ask } = setUp();
    for (const change of [() => feed.change('key_1'), () => feed.reset()]) {
      inner.meanwhile = change;
      expect(ask()).toEqual(denial());
      expect(limiter.size).toBe(0);
    }
  });

  it('neither answer nor learn from a fresh copy', () => {
    const { inner, limiter, ask } = setUp();
    ask(subject('key_1', { fresh: true }));
    expect(limiter.size).toBe(0);
    ask();
    ask(subject('key_1', { fresh: true }));
    expect(inner.asked).toBe(3);
  });

  it.each<Decision>([
    denial({ degraded: true }),
    { kind: 'admitted', remaining: 0, nowMs: STORE_NOW, resetAtMs: STORE_NOW + 1, degraded: false },
    { kind: 'unlimited', degraded: false },
    { kind: 'stale' },
    { kind: 'unavailable', cause: new Error('away') },
  ])('remember nothing of %j', (answer) => {
    const { inner, limiter, ask } = setUp();
    inner.answer = answer;
    expect(ask()).toEqual(answer);
    expect(limiter.size).toBe(0);
  });

  it('are bounded: the oldest goes first', () => {
    const { inner, limiter, ask } = setUp(3);
    for (const keyId of ['a', 'b', 'c', 'a', 'd']) ask(subject(keyId, { fresh: false }));
    expect(limiter.size).toBe(3);
    expect(inner.asked).toBe(4);
    ask(subject('a', { fresh: false }));
    expect(inner.asked).toBe(5);
  });
});
