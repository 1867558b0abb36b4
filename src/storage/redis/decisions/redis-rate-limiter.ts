import { UnreadableCounts } from '../../../limiter/not-counted.ts';
import { windowEndMs } from '../../../limiter/period.ts';
import type { Decision, LimitSubject, RateLimiter } from '../../../limiter/rate-limiter.ts';
import { VERSION_KEPT_MS } from '../../../limiter/record-versions.ts';
import { type DecidedWindow, limitAt } from '../../../limiter/request-limits.ts';
import type { Clock } from '../../../platform/clock.ts';
import { LuaScript } from '../lua-script.ts';
import type { RedisConnection } from '../redis-connection.ts';
import { settled, unexpectedReply } from '../redis-failure.ts';
import { CallDurations, DecisionCalls } from './decision-calls.ts';
import {
  ALLOWED,
  type DecisionReply,
  decisionKeyNamesOf,
  LIMITED,
  limitArgumentsOf,
  STALE,
  serverTimeOf,
  UNLIMITED,
  UNREADABLE,
} from './decision-messages.ts';
import { type DecisionRoutes, decisionRoutes } from './server-routing.ts';

/** What `RedisRateLimiter` needs. */
export interface RedisRateLimiterOptions {
  readonly decisions: RedisConnection;
  readonly clock: Clock;
  /** The timeout of a decision, in milliseconds. */
  readonly timeoutMs: number;
}

/** Decides with a script in Redis, by Redis's clock: the counters are shared by all replicas. */
export class RedisRateLimiter implements RateLimiter {
  /** Time from the call to the reply of every decision, failed ones included. */
  readonly callDurations = new CallDurations();
  readonly #routes: DecisionRoutes;
  readonly #calls: DecisionCalls;

  constructor({ decisions, clock, timeoutMs }: RedisRateLimiterOptions) {
    const script = new LuaScript(new URL('./decideRequests-n.lua', import.meta.url));
    this.#routes = decisionRoutes(decisions, script, clock);
    this.#calls = new DecisionCalls(this.#routes, { clock, timeoutMs });
  }

  /** True while every server is ready. A server's time is read before its first decision. */
  get isReady(): boolean {
    return this.#routes.areReady;
  }

  /** Rejects with `StoreUnavailable` when a server does not respond. */
  ping(): Promise<void> {
    return settled(this.#routes.ping());
  }

  decide(subject: LimitSubject, decided: (decision: Decision) => void): void {
    const { keyId, version, fresh, limits } = subject;
    const request = {
      keyId,
      keyNames: decisionKeyNamesOf(subject),
      words: `${version}${fresh ? ` !${VERSION_KEPT_MS}` : ''} ${limitArgumentsOf(subject)}`,
      windows: limits.length,
    };
    this.#calls.call(request, (error, reply, tookMs) => {
      this.callDurations.add(tookMs);
      if (reply !== undefined) decided(readDecision(reply, subject));
      else decided({ kind: 'unavailable', cause: error ?? unexpectedReply() });
    });
  }
}

/** Reads a decision from a reply as the header of `decideRequests-n.lua` describes it. */
function readDecision(reply: DecisionReply, subject: LimitSubject): Decision {
  const kind = reply.numbers[reply.at];
  switch (kind) {
    case STALE:
      return { kind: 'stale' };
    case ALLOWED:
    case LIMITED:
      return {
        kind: kind === ALLOWED ? 'allowed' : 'limited',
        windows: readWindows(reply, subject),
        nowMs: serverTimeOf(reply),
        degraded: false,
      };
    case UNLIMITED:
      return { kind: 'unlimited', degraded: false };
    case UNREADABLE:
      return {
        kind: 'unavailable',
        cause: new UnreadableCounts('the index of its customers has another type'),
      };
  }
  return { kind: 'unavailable', cause: unexpectedReply() };
}

const SHARED_BIT = 16;

function readWindows({ numbers, at }: DecisionReply, { limits }: LimitSubject): readonly DecidedWindow[] {
  const nowMs = numbers[0] ?? 0;
  const flags = numbers[at + 1] ?? 0;
  return limits.map((limit, index) => {
    const resetAtMs = numbers[at + 3 + 2 * index] ?? -1;
    return {
      limit,
      quota: limitAt(limit, nowMs),
      used: numbers[at + 2 + 2 * index] ?? 0,
      resetAtMs: resetAtMs < 0 ? windowEndMs(nowMs, limit.period) : resetAtMs,
      isExceeded: ((flags >> index) & 1) === 1,
      isShared: ((flags >> (SHARED_BIT + index)) & 1) === 1,
    };
  });
}
