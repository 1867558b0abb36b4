import type { GuardedRateLimiter } from '../../limiter/guards/guarded-rate-limiter.ts';
import { InProcessRateLimiter } from '../../limiter/in-process/in-process-rate-limiter.ts';
import { InProcessRecordVersions } from '../../limiter/in-process/in-process-record-versions.ts';
import { InProcessWindowCounters } from '../../limiter/in-process/in-process-window-counters.ts';
import { WindowTable } from '../../limiter/in-process/window-table.ts';
import type { RateLimiter } from '../../limiter/rate-limiter.ts';
import type { ChangeFeed, RepublishedVersions, SharedVersions } from '../../limiter/record-versions.ts';
import type { WindowCounters } from '../../limiter/window-counters.ts';
import type { Component } from '../../observability/readiness.ts';
import type { Platform } from '../../platform/platform.ts';
import { InProcessLiveUsage } from '../../storage/embedded/in-process-live-usage.ts';
import type { CallDurations } from '../../storage/redis/decisions/decision-calls.ts';
import type { OpenRedis } from '../../storage/redis/open-redis.ts';
import type { LiveUsage } from '../../usage/live-usage.ts';

/** Where requests are counted: in Redis, shared by all replicas, or in this process alone. */
export interface Counting {
  /** The limiter with its guards, such as the circuit breaker. */
  readonly limiter: RateLimiter;
  /** The windows that the limiter counts in. */
  readonly counters: WindowCounters;
  readonly versions: SharedVersions;
  readonly changes: ChangeFeed;
  readonly liveUsage: LiveUsage;
  /** What only the shared limiter has, for its metrics; undefined if this process counts alone. */
  readonly shared:
    | (GuardedRateLimiter & {
        readonly redisCalls: CallDurations;
        readonly liveReplicas: () => number;
        readonly republished: RepublishedVersions;
        readonly redis: Pick<
          OpenRedis,
          'ping' | 'describeServers' | 'replicas' | 'lastFailure' | 'changes' | 'partOf'
        >;
      })
    | undefined;
  /** Resolves when requests can be counted, or it is known that they can't, after a second at most. */
  firstAttempt(): Promise<void>;
  /** For readiness; undefined if this process counts alone, which can't fail. */
  readonly component: Component | undefined;
  close(): Promise<void>;
}

/** Counts in this process alone. */
export function countInProcess({ clock, random }: Platform): Counting {
  const table = new WindowTable();
  const versions = new InProcessRecordVersions(table, clock);
  return {
    limiter: new InProcessRateLimiter(table, clock),
    counters: new InProcessWindowCounters(table, clock),
    versions,
    changes: versions,
    liveUsage: new InProcessLiveUsage(clock, random),
    shared: undefined,
    firstAttempt: () => Promise.resolve(),
    component: undefined,
    close: () => Promise.resolve(),
  };
}
