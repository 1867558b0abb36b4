import { describe, expect, it } from '@jest/globals';
import {
  CircuitBreaker,
  CircuitOpen,
  type CircuitState,
} from '../../../src/limiter/guards/guarded-rate-limiter.ts';
import { UnreadableCounts } from '../../../src/limiter/not-counted.ts';
import type { Decision, LimitSubject, RateLimiter } from '../../../src/limiter/rate-limiter.ts';
import { subject } from '../../support/limiter-stores.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const UNAVAILABLE: Decision = { kind: 'unavailable', cause: new Error('unavailable') };
const STALE: Decision = { kind: 'stale' };

/** Keeps the questions until the test responds to them. */
class WaitingLimiter implements RateLimiter {
  readonly waiting: ((decision: Decision) => void)[] = [];
  asked = 0;
  decide(_subject: LimitSubject, decided: (decision: Decision) => void): void {
    this.asked += 1;
    this.waiting.push(decided);
  }
  respond(decision: Decision): void {
    this.waiting.shift()?.(decision);
  }
}

function setUp() {
  const clock = new ManualClock(0);
  const inner = new WaitingLimiter();
  const states: CircuitState[] = [];
  const unreadable: unknown[] = [];
  const breaker = new CircuitBreaker(inner, {
    clock,
    onStateChange: (state) => states.push(state),
    onUnreadable: (...args) => void unreadable.push(args),
  });
  const decisions: Decision[] = [];
  const ask = () => breaker.decide(subject('key_1'), (decision) => decisions.push(decision));
  const roundTrip = (decision: Decision, times = 1) => {
    for (let time = 0; time < times; time += 1) {
      ask();
      inner.respond(decision);
    }
  };
  return { clock, inner, states, unreadable, breaker, decisions, ask, roundTrip };
}

describe('the circuit breaker', () => {
  it('opens after failures in a row, and then responds at once without asking', () => {
    const { inner, breaker, decisions, ask, roundTrip } = setUp();
    roundTrip(UNAVAILABLE, 4);
    roundTrip(STALE);
    roundTrip(UNAVAILABLE, 4);
    expect(breaker.state).toBe('closed');
    roundTrip(UNAVAILABLE);
    expect(breaker.state).toBe('open');
    ask();
    expect(inner.asked).toBe(10);
    expect(decisions.at(-1)).toEqual({ kind: 'unavailable', cause: expect.any(CircuitOpen) });
  });

  it('stays closed where the counts of one key can not be read, and says of which', () => {
    const { breaker, roundTrip, unreadable } = setUp();
    const cause = new UnreadableCounts('WRONGTYPE');
    roundTrip({ kind: 'unavailable', cause }, 30);
    expect(breaker.state).toBe('closed');
    expect(unreadable).toEqual(Array.from({ length: 30 }, () => ['key_1', cause]));
    roundTrip(UNAVAILABLE, 4);
    roundTrip({ kind: 'unavailable', cause });
    roundTrip(UNAVAILABLE, 4);
    expect(breaker.state).toBe('closed');
  });

  it('opens when half of many calls fail, though never in a row', () => {
    const { breaker, roundTrip } = setUp();
    for (let round = 0; round < 9; round += 1) {
      roundTrip(STALE);
      roundTrip(UNAVAILABLE);
    }
    expect(breaker.state).toBe('closed');
    roundTrip(STALE);
    roundTrip(UNAVAILABLE);
    expect(breaker.state).toBe('open');
  });

  it('stays closed while few of many calls fail', () => {
    const { breaker, roundTrip } = setUp();
    for (let round = 0; round < 20; round += 1) {
      roundTrip(STALE, 9);
      roundTrip(UNAVAILABLE);
    }
    expect(breaker.state).toBe('closed');
  });

  it('opens when half of many calls fail, however many succeeded long ago', () => {
    const { clock, breaker, roundTrip } = setUp();
    roundTrip(STALE, 1000);
    clock.advance(60_000);
    for (let round = 0; round < 10; round += 1) {
      roundTrip(STALE);
      roundTrip(UNAVAILABLE);
    }
    expect(breaker.state).toBe('open');
  });

  it('forgets failures of long ago', () => {
    const { clock, breaker, roundTrip } = setUp();
    for (let round = 0; round < 40; round += 1) {
      roundTrip(STALE);
      roundTrip(UNAVAILABLE);
      clock.advance(1000);
    }
    expect(breaker.state).toBe('closed');
  });

  it('lets one trial through after the pause, and closes when it succeeds', () => {
    const { clock, inner, states, ask, roundTrip } = setUp();
    roundTrip(UNAVAILABLE, 5);
    clock.advance(249);
    ask();
    expect(inner.asked).toBe(5);
    clock.advance(1);
    ask();
    ask();
    expect(inner.asked).toBe(6);
    inner.respond(STALE);
    ask();
    expect(inner.asked).toBe(7);
    expect(states).toEqual(['open', 'half-open', 'closed']);
  });

  it('doubles the pause with each failed trial, up to the longest, until it closes', () => {
    const { clock, inner, breaker, roundTrip, ask } = setUp();
    roundTrip(UNAVAILABLE, 5);
    for (const pauseMs of [250, 500, 1000, 2000, 4000, 5000, 5000]) {
      clock.advance(pauseMs - 1);
      const { asked } = inner;
      ask();
      expect(inner.asked).toBe(asked);
      clock.advance(1);
      roundTrip(UNAVAILABLE);
      expect(inner.asked).toBe(asked + 1);
      expect(breaker.state).toBe('open');
    }
    expect(breaker.openings).toBe(1);
    clock.advance(5000);
    roundTrip(STALE);
    roundTrip(UNAVAILABLE, 5);
    expect(breaker.openings).toBe(2);
    clock.advance(250);
    ask();
    expect(breaker.state).toBe('half-open');
  });

  it('learns nothing from responses to calls made before it opened', () => {
    const { clock, inner, breaker, decisions, ask } = setUp();
    for (let time = 0; time < 7; time += 1) ask();
    for (let time = 0; time < 5; time += 1) inner.respond(UNAVAILABLE);
    expect(breaker.state).toBe('open');
    clock.advance(250);
    ask();
    inner.respond(UNAVAILABLE);
    inner.respond(STALE);
    expect(breaker.state).toBe('half-open');
    inner.respond(STALE);
    expect(breaker.state).toBe('closed');
    expect(decisions).toHaveLength(8);
  });
});
