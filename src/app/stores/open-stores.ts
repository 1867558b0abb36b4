import { join } from 'node:path';
import type { DegradationEvents } from '../../events/degradation-events.ts';
import { type CircuitState, guardRateLimiter } from '../../limiter/guards/guarded-rate-limiter.ts';
import { ReadinessFault } from '../../observability/readiness.ts';
import { LogThrottle } from '../../platform/log-throttle.ts';
import type { Platform } from '../../platform/platform.ts';
import type { RecordSettings, Settings } from '../../settings/settings.ts';
import { openEmbeddedRecords } from '../../storage/embedded/open-embedded-records.ts';
import { failureReason } from '../../storage/failure-reason.ts';
import { openRecords, type Records, type RecordsOptions } from '../../storage/postgres/open-records.ts';
import { POSTGRES_CONNECTIONS } from '../../storage/postgres/postgres-connection.ts';
import { type OpenRedis, openRedis } from '../../storage/redis/open-redis.ts';
import type { RedisAddress } from '../../storage/redis/redis-connection.ts';
import { RedisLiveUsage } from '../../storage/redis/usage/redis-live-usage.ts';
import { type Counting, countInProcess } from './counting.ts';

/** What notices when Redis does not decide any more, and when it does again. */
type DegradationWatch = Pick<DegradationEvents, 'begin' | 'end'>;

/** Where the embedded Postgres keeps its files. */
export function recordsDirectory({ dataDir }: Pick<RecordSettings, 'dataDir'>): string {
  return join(dataDir, 'postgres');
}

/**
 * Opens the records: a Postgres server, or the embedded one under `DATA_DIR`. Waits only for the embedded one. A program that makes no
 * changes leaves out `changes`.
 */
export async function openRecordStore(
  settings: RecordSettings & Partial<Pick<Settings, 'authorizePort'>>,
  { log, clock }: Platform,
  changes: Pick<RecordsOptions, 'chainSecrets' | 'beforeChange'> = { chainSecrets: null },
): Promise<Records> {
  const throttle = new LogThrottle(clock);
  const options = {
    migrationsDirectory: join(import.meta.dirname, '../../../sql'),
    defaultPlanId: settings.defaultPlanId,
    withOwners: typeof settings.authorizePort === 'number',
    ...changes,
    pathCase: settings.pathCase,
  };
  if (settings.databaseUrl === null) {
    return openEmbeddedRecords({
      ...{ ...options, directory: recordsDirectory(settings) },
      onUpkeepFailure: (error) => {
        if (throttle.note() > 0)
          log.warn({ err: error }, 'the upkeep of the embedded Postgres failed; it is tried again');
      },
    });
  }
  return openRecords({
    ...options,
    url: settings.databaseUrl,
    maxConnections: POSTGRES_CONNECTIONS,
    // Logs only the message: the error holds the whole client, with the secret that cancels its queries.
    onIdleError: (error) => {
      // A server that stops breaks all idle connections at once.
      if (throttle.note() > 0) log.warn({ reason: error.message }, 'an idle Postgres connection broke');
    },
  });
}

/** Opens the store that counts requests. Connects to Redis in the background, so that a gateway starts without it, too. */
export function openCounting(
  settings: Settings,
  platform: Platform,
  watchOf: (replicaId: string) => DegradationWatch,
): Counting {
  const { redisUrl } = settings;
  if (redisUrl === null) return countInProcess(platform);
  const replicaId = platform.random.bytes(12).toString('base64url');
  return countInRedis(redisUrl, settings, { ...platform, replicaId, watch: watchOf(replicaId) });
}

function countInRedis(
  address: RedisAddress,
  settings: Settings,
  platform: Platform & { readonly replicaId: string; readonly watch: DegradationWatch },
): Counting {
  const { clock, random, log, watch } = platform;
  const redis = openRedis(
    { address, mode: settings.redisMode, timeoutMs: settings.redisTimeoutMs },
    platform,
  );
  const liveReplicas = () => redis.replicas.liveReplicas;
  const throttle = new LogThrottle(clock);
  const guarded = guardRateLimiter(redis.limiter, {
    clock,
    random,
    changes: redis.changes,
    mode: settings.limiterFailureMode,
    liveReplicas,
    counters: redis.counters,
    onStateChange: noteCircuit(settings.limiterFailureMode, log, watch),
    onUnreadable: (consumerApiKeyId, { message: reason }) => {
      const decisions = throttle.note();
      if (decisions > 0)
        log.warn(
          { consumerApiKeyId, decisions, reason },
          'the entries of a key in Redis can not be read: the failure mode decides about it',
        );
    },
  });
  return {
    limiter: guarded.limiter,
    counters: redis.counters,
    versions: redis.versions,
    changes: redis.changes,
    liveUsage: new RedisLiveUsage(redis.usageConnection, clock),
    shared: {
      ...guarded,
      redisCalls: redis.limiter.callDurations,
      liveReplicas,
      republished: redis.versions,
      redis,
    },
    firstAttempt: redis.firstAttempt,
    component: { name: 'redis', check: () => checkRedis(redis) },
    close: async () => {
      const units = await guarded.restorer.stop(guarded.failureMode.sharedNowMs);
      if (units > 0) log.warn({ units }, 'what was allowed without Redis could not be added to its counts');
      await redis.close();
    },
  };
}

/** Logs one line when the circuit opens and one when it closes, and tells the watch. Its trials are logged at level debug. */
function noteCircuit(
  mode: Settings['limiterFailureMode'],
  log: Platform['log'],
  watch: DegradationWatch,
): (state: CircuitState) => void {
  let isOpen = false;
  return (state) => {
    if (state === 'open' && !isOpen) log.warn({ mode }, 'Redis does not decide: the failure mode does');
    else if (state === 'closed' && isOpen) log.info('Redis decides again');
    else log.debug({ state }, 'the circuit to Redis changed');
    isOpen = state !== 'closed';
    if (state === 'open') watch.begin();
    else if (state === 'closed') watch.end();
  };
}

async function checkRedis(redis: OpenRedis): Promise<void> {
  const faults = await redis
    .ping()
    .then(() => redis.findFaults())
    .catch((error: unknown) => {
      throw new ReadinessFault(failureReason(redis.lastFailure() ?? error));
    });
  if (faults.length > 0) throw new ReadinessFault(faults.join('; '));
}
