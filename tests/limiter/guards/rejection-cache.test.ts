import { describe, expect, it } from '@jest/globals';
import { RejectionCache } from '../../../src/limiter/guards/rejection-cache.ts';
import type {
  CountedDecision,
  Decision,
  LimitSubject,
  RateLimiter,
} from '../../../src/limiter/rate-limiter.ts';
import type { ChangeFeed } from '../../../src/limiter/record-versions.ts';
import type { Limit } from '../../../src/limiter/request-limits.ts';
import { counted, quota, subject } from '../../support/limiter-stores.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const STORE_NOW = 5_000_000;

/** Responds as the test says, and counts its calls. */
class ScriptedLimiter implements RateLimiter {
  response: Decision = rejection();
  asked = 0;
  /** What happens between question and response. */
  meanwhile: () => void = () => {};
  decide(_subject: LimitSubject, decided: (decision: Decision) => void): void {
    this.asked += 1;
    this.meanwhile();
    decided(this.response);
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

const HOURLY = quota(10, 'hour');

function rejection({ resetInMs = 60_000, degraded = false, limit = HOURLY } = {}): Decision {
  return counted('limited', {
    limit,
    used: 10,
    nowMs: STORE_NOW,
    resetAtMs: STORE_NOW + resetInMs,
    degraded,
  });
}

function setUp() {
  const clock = new ManualClock(0);
  const feed = new ManualFeed();
  const inner = new ScriptedLimiter();
  const limiter = new RejectionCache(inner, { clock, changes: feed });
  const ask = (asked: LimitSubject = subject('key_1', { fresh: false, quota: HOURLY })): Decision => {
    let response: Decision | undefined;
    limiter.decide(asked, (decision) => {
      response = decision;
    });
    if (response === undefined) throw new Error('not decided');
    return response;
  };
  return { clock, feed, inner, limiter, ask };
}

describe('local rejections', () => {
  it('repeat a rejection without asking, at the time that the store has by now', () => {
    const { clock, inner, limiter, ask } = setUp();
    expect(ask()).toEqual(rejection());
    clock.advance(400);
    expect(ask()).toEqual({ ...rejection(), nowMs: STORE_NOW + 400 });
    expect(inner.asked).toBe(1);
    expect(limiter.hits).toBe(1);
  });

  it('never put the time of the store ahead of what it is, however slow the call was', () => {
    const { clock, inner, ask } = setUp();
    inner.meanwhile = () => clock.advance(300);
    ask();
    clock.advance(200);
    expect(ask()).toEqual({ ...rejection(), nowMs: STORE_NOW + 200 });
    expect(inner.asked).toBe(1);
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
    inner.response = rejection({ resetInMs: 300 });
    ask();
    clock.advance(299);
    ask();
    expect(inner.asked).toBe(1);
    clock.advance(1);
    ask();
    expect(inner.asked).toBe(2);
  });

  it('ask again at the end of the override of a key, and then repeat as if it had none', () => {
    const { clock, inner, ask } = setUp();
    const limit = quota(50, 'hour', { baseLimit: 10, endsAtMs: STORE_NOW + 300 });
    const limited = (nowMs: number) =>
      counted('limited', { limit, used: 50, nowMs, resetAtMs: STORE_NOW + 60_000 });
    const again = () => ask(subject('key_1', { fresh: false, quota: limit }));
    inner.response = limited(STORE_NOW);
    again();
    clock.advance(299);
    again();
    expect(inner.asked).toBe(1);
    clock.advance(1);
    inner.response = limited(STORE_NOW + 300);
    again();
    expect(inner.asked).toBe(2);
    again();
    clock.advance(999);
    again();
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
    ask(subject('key_1', { fresh: false, quota: HOURLY, ...fields }));
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

  it('learn nothing from a response that a change overtook', () => {
    const { feed, inner, limiter, ask } = setUp();
    const [change, reset] = [() => feed.change('key_1'), () => feed.reset()];
    for (const changes of [[change], [reset], [change, reset]]) {
      inner.meanwhile = () => changes.forEach((each) => void each());
      expect(ask()).toEqual(rejection());
      expect(limiter.size).toBe(0);
    }
  });

  it('neither repeat nor cache a decision for a fresh copy', () => {
    const { inner, limiter, ask } = setUp();
    ask(subject('key_1', { fresh: true, quota: HOURLY }));
    expect(limiter.size).toBe(0);
    ask();
    ask(subject('key_1', { fresh: true, quota: HOURLY }));
    expect(inner.asked).toBe(3);
  });

  it.each<Decision>([
    rejection({ degraded: true }),
    counted('allowed', { used: 10, nowMs: STORE_NOW, resetAtMs: STORE_NOW + 1 }),
    { kind: 'unlimited', degraded: false },
    { kind: 'stale' },
    { kind: 'unavailable', cause: new Error('unavailable') },
  ])('remember nothing of %j', (response) => {
    const { inner, limiter, ask } = setUp();
    inner.response = response;
    expect(ask()).toEqual(response);
    expect(limiter.size).toBe(0);
  });

  it('are bounded: the oldest goes first', () => {
    const { inner, limiter, ask } = setUp();
    const askFor = (key: number) => ask(subject(`key_${key}`, { fresh: false, quota: HOURLY }));
    for (let key = 1; key <= 10_000; key += 1) askFor(key);
    askFor(1);
    askFor(10_001);
    expect(limiter.size).toBe(10_000);
    expect(inner.asked).toBe(10_001);
    askFor(1);
    expect(inner.asked).toBe(10_002);
  });

  it('drop no other key when one of them is rejected again', () => {
    const { clock, inner, limiter, ask } = setUp();
    const askFor = (key: number) => ask(subject(`key_${key}`, { fresh: false, quota: HOURLY }));
    askFor(1);
    inner.response = rejection({ resetInMs: 100 });
    askFor(2);
    inner.response = rejection();
    for (let key = 3; key <= 10_000; key += 1) askFor(key);
    clock.advance(200);
    askFor(2);
    expect(inner.asked).toBe(10_001);
    askFor(1);
    expect(inner.asked).toBe(10_001);
    expect(limiter.size).toBe(10_000);
  });

  describe('of several limits', () => {
    const SEARCH = quota(1, 'day', { id: 'search' });
    const TENANT = quota(5, 'hour', { id: 'tenant', per: 'customer' });
    const decision = (
      kind: 'allowed' | 'limited',
      ...windows: readonly (readonly [Limit, number])[]
    ): CountedDecision => ({
      kind,
      windows: windows.map(([limit, used]) => ({
        limit,
        quota: limit.limit,
        used,
        resetAtMs: STORE_NOW + (limit === SEARCH ? 86_400_000 : 3_600_000),
        isExceeded: kind === 'limited' && used >= limit.limit,
        isShared: false,
      })),
      nowMs: STORE_NOW,
      degraded: false,
    });
    const request = (limits: readonly Limit[], fields: Partial<LimitSubject> = {}) =>
      subject('key_1', { fresh: false, limits, ...fields });

    it('ask for a limit of the key that they do not know: it may end later', () => {
      const { inner, ask } = setUp();
      inner.response = decision('limited', [HOURLY, 10]);
      ask(request([HOURLY]));
      inner.response = decision('limited', [HOURLY, 10], [SEARCH, 1]);
      expect(ask(request([HOURLY, SEARCH]))).toEqual(inner.response);
      expect(inner.asked).toBe(2);
    });

    it('have the windows in the order of the limits that apply, and no others', () => {
      const { inner, ask } = setUp();
      inner.response = decision('limited', [HOURLY, 10], [SEARCH, 1]);
      ask(request([HOURLY, SEARCH]));
      inner.response = decision('limited', [HOURLY, 10]);
      ask(request([HOURLY], { cost: 2 }));
      expect(ask(request([HOURLY, SEARCH]))).toEqual(decision('limited', [HOURLY, 10], [SEARCH, 1]));
      expect(ask(request([HOURLY]))).toEqual(decision('limited', [HOURLY, 10]));
      expect(inner.asked).toBe(1);
    });

    it('ask for the window of a customer that they do not know: it may end later', () => {
      const { inner, ask } = setUp();
      inner.response = decision('limited', [HOURLY, 10], [TENANT, 1]);
      ask(request([HOURLY, TENANT], { customerId: 'acme' }));
      inner.response = decision('limited', [HOURLY, 10], [TENANT, 5]);
      const other = request([HOURLY, TENANT], { customerId: 'other' });
      expect(ask(other)).toEqual(inner.response);
      expect(ask(other)).toEqual(inner.response);
      expect(inner.asked).toBe(2);
    });

    it('cost made-up customers few calls, and lack the windows of most', () => {
      const { clock, inner, ask } = setUp();
      inner.response = decision('limited', [HOURLY, 10], [TENANT, 5]);
      const askForMany = () => {
        for (let customer = 0; customer < 1000; customer += 1)
          ask(request([HOURLY, TENANT], { customerId: `made-up ${customer}` }));
      };
      askForMany();
      // One place is that of the key's window.
      expect(inner.asked).toBe(15);
      const repeated = (customerId: string) => ask(request([HOURLY, TENANT], { customerId }));
      expect(repeated('made-up 0')).toEqual(inner.response);
      expect(repeated('made-up 15')).toEqual(decision('limited', [HOURLY, 10]));
      clock.advance(1000);
      askForMany();
      expect(inner.asked).toBe(30);
    });

    it('say what is left after requests that were allowed meanwhile', () => {
      const { clock, inner, ask } = setUp();
      const expensive = request([HOURLY], { cost: 5 });
      inner.response = { ...decision('allowed', [HOURLY, 7]), kind: 'limited' };
      ask(expensive);
      inner.response = decision('allowed', [HOURLY, 8]);
      ask(request([HOURLY]));
      const repeated = ask(expensive);
      expect(repeated).toMatchObject({ kind: 'limited', windows: [{ used: 8, isExceeded: true }] });
      expect(inner.asked).toBe(2);

      clock.advance(1000);
      ask(expensive);
      expect(inner.asked).toBe(3);
    });

    it('keep the window of a customer when a request of another one is allowed', () => {
      const { clock, inner, ask } = setUp();
      clock.advance(100);
      inner.response = decision('limited', [HOURLY, 7], [TENANT, 5]);
      ask(request([HOURLY, TENANT], { customerId: 'acme' }));
      inner.response = decision('allowed', [HOURLY, 8], [TENANT, 1]);
      ask(request([HOURLY, TENANT], { customerId: 'other' }));
      clock.advance(50);
      expect(ask(request([HOURLY, TENANT], { customerId: 'acme' }))).toEqual({
        ...decision('limited', [HOURLY, 8], [TENANT, 5]),
        nowMs: STORE_NOW + 50,
      });
      expect(inner.asked).toBe(2);
    });

    it('are not repeated to a request that costs nothing, even in a window that is beyond its limit', () => {
      const { inner, ask } = setUp();
      inner.response = decision('limited', [HOURLY, 12]);
      ask(request([HOURLY]));
      ask(request([HOURLY], { cost: 0 }));
      expect(inner.asked).toBe(2);
    });

    it('are forgotten when their key is within its limits again', () => {
      const { clock, inner, limiter, ask } = setUp();
      ask();
      clock.advance(1000);
      inner.response = decision('allowed', [HOURLY, 1]);
      ask();
      expect(limiter.size).toBe(0);
    });
  });
});
