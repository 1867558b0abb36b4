import { CallTimes } from '../../limiter/call-times.ts';
import { windowEndMs } from '../../limiter/period.ts';
import type { Decision, LimitSubject, Quota, RateLimiter, WindowState } from '../../limiter/rate-limiter.ts';
import type { Clock } from '../../platform/clock.ts';
import type { RedisConnection } from './connection.ts';
import { DecisionCalls } from './decision-calls.ts';
import { type DecisionRoutes, decisionRoutes } from './decision-routes.ts';
import { periodKey, versionKey, windowKey } from './key-names.ts';
import { LuaScript } from './lua-script.ts';
import { redisUnavailable } from './redis-failure.ts';
import { VERSION_KEPT_MS } from './redis-record-versions.ts';

/** What the limiter in Redis needs. */
export interface RedisRateLimiterOptions {
  readonly decisions: RedisConnection;
  /** For `peek`, which must not wait in the hot path. */
  readonly background: RedisConnection;
  readonly clock: Clock;
  /** The longest that a decision takes, in milliseconds. */
  readonly timeoutMs: number;
}

/** Counts in Redis: one script call per decision, by Redis's own clock, shared by all replicas. */
export class RedisRateLimiter implements RateLimiter {
  /** Time from asking to the answer of every decision, failed ones included. */
  readonly callTimes = new CallTimes();
  readonly #routes: DecisionRoutes;
  readonly #calls: DecisionCalls;
  readonly #background: RedisConnection;
  readonly #peekWindow = new LuaScript('peekWindow-2');

  constructor({ decisions, background, clock, timeoutMs }: RedisRateLimiterOptions) {
    this.#routes = decisionRoutes(decisions, clock);
    this.#calls = new DecisionCalls(this.#routes, new LuaScript('admitRequest-3'), { clock, timeoutMs });
    this.#background = background;
  }

  /** True while every server can be asked. A server tells its time before it is asked for the first decision. */
  get isReady(): boolean {
    return this.#routes.areReady;
  }

  /** Rejects with `StoreUnavailable` when a server does not answer. */
  async ping(): Promise<void> {
    try {
      await this.#routes.ping();
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  decide(subject: LimitSubject, decided: (decision: Decision) => void): void {
    const { keyId, version, fresh, quota } = subject;
    const limits = quota === null ? '- -' : `${quota.limit} ${quota.period.token}`;
    this.#calls.call(
      keyId,
      [versionKey(keyId), windowKey(keyId), periodKey(keyId)],
      `${version} ${fresh ? '1' : '0'} ${limits} ${VERSION_KEPT_MS}`,
      (error, reply, tookMs) => {
        this.callTimes.add(tookMs);
        decided(error ? { kind: 'unavailable', cause: error } : readDecision(reply));
      },
    );
  }

  async peek(keyId: string, quota: Quota): Promise<WindowState> {
    const reply = await this.#peekWindow.run(this.#background, [
      windowKey(keyId),
      periodKey(keyId),
      quota.period.token,
    ]);
    if (!isNumbers(reply)) throw redisUnavailable(unexpectedReply());
    const [used = 0, resetAtMs = -1, nowMs = 0] = reply;
    if (resetAtMs === WINDOW_WITHOUT_EXPIRY)
      return { used, resetAtMs: windowEndMs(nowMs, quota.period), nowMs };
    return { used, resetAtMs: resetAtMs < 0 ? null : resetAtMs, nowMs };
  }
}

const WINDOW_WITHOUT_EXPIRY = -2;

/** Reads the tuple that the header of `admitRequest-3.lua` describes. */
function readDecision(reply: readonly number[]): Decision {
  const [kind, remaining = 0, resetAtMs = 0, nowMs = 0] = reply;
  switch (kind) {
    case 0:
      return { kind: 'stale' };
    case 1:
      return { kind: 'admitted', remaining, resetAtMs, nowMs, degraded: false };
    case 2:
      return { kind: 'denied', resetAtMs, nowMs, degraded: false };
    case 3:
      return { kind: 'unlimited', degraded: false };
  }
  return { kind: 'unavailable', cause: unexpectedReply() };
}

function isNumbers(reply: unknown): reply is number[] {
  return Array.isArray(reply) && reply.every((item) => typeof item === 'number');
}

function unexpectedReply(): Error {
  return new Error('Redis answered a script call with something else than the script returns');
}
