import { probeConnection } from '../../backend/probe-connection.ts';
import type {
  Degradable,
  PostgresStatus,
  Reachability,
  RedisStatus,
  ReplicaStatus,
  SystemReport,
  SystemStatus,
  UsageStatus,
} from '../../management/system/system-report.ts';
import type { Clock } from '../../platform/clock.ts';
import { sharedWhileRunning } from '../../platform/concurrency/shared-while-running.ts';
import { gatewayVersion } from '../../platform/gateway-version.ts';
import { withinDeadline } from '../../platform/within-deadline.ts';
import type { Settings } from '../../settings/settings.ts';
import { failureReason } from '../../storage/failure-reason.ts';
import type { Usage } from '../../usage/create-usage.ts';
import type { Counting } from '../stores/counting.ts';
import type { Stores } from '../wiring/wire-stores.ts';
import { describeProcess, type ReplicaDescription, readDescription } from './replica-description.ts';

/** The sources of the report. */
export interface GatewayStatusParts {
  readonly stores: Stores;
  readonly usage: Usage;
  readonly isBackendUnreachable: () => boolean;
  readonly settings: Settings;
  readonly clock: Clock;
}

/** The longest that each store or the backend may take to respond. Milliseconds. */
const RESPONSE_DEADLINE_MS = 2000;
/** Most replicas in the report. */
const LISTED_REPLICAS = 200;
/** Usage counts as degraded when it has waited longer than two flush intervals and this margin. Milliseconds. */
const FLUSH_MARGIN_MS = 10_000;

type Shared = NonNullable<Counting['shared']>;

/** Checks the stores and the backend, and publishes the state of this replica for the others. */
export class GatewayStatus implements SystemStatus {
  readonly #parts: GatewayStatusParts;
  readonly #process: Omit<ReplicaDescription, 'degraded'>;
  readonly read = sharedWhileRunning(() => this.#read());

  constructor(parts: GatewayStatusParts) {
    this.#parts = parts;
    this.#process = describeProcess(gatewayVersion(), parts.settings.workers, parts.clock.nowMs());
  }

  /** Adds the state of this replica to its heartbeats. */
  announce(): void {
    const { counting, readiness } = this.#parts.stores;
    const replicas = counting.shared?.redis.replicas;
    replicas?.describeWith(() => ({ ...this.#process, degraded: this.#lastDegraded() }));
    // The first heartbeat says that the stores are not checked yet. The others must not take that for trouble until the next one.
    void readiness.started.then(() => replicas?.beat());
  }

  async #read(): Promise<SystemReport> {
    const { clock, stores, settings } = this.#parts;
    const { shared } = stores.counting;
    const [postgres, redis, listed, usage, backend] = await Promise.all([
      this.#readPostgres(),
      shared && this.#readRedis(shared),
      shared && inTime(shared.redis.replicas.list(LISTED_REPLICAS)).catch(() => undefined),
      this.#readUsage(),
      this.#readBackend(),
      stores.readiness.check(),
    ]);
    const faults = stores.readiness.last().components;
    const atMs = clock.nowMs();
    const found = {
      postgres: { ...postgres, fault: postgres.fault ?? faultOf(faults.postgres) },
      redis: redis && { ...redis, fault: redis.fault ?? faultOf(faults.redis) },
      backend,
      usage,
    };
    const degraded = this.#degraded(found, atMs);
    const own = this.#own(degraded, atMs);
    const others = (listed?.replicas ?? []).filter(({ replicaId }) => replicaId !== own.replicaId);
    return {
      ...{ atMs, version: this.#process.version, degraded },
      ...found,
      backend: backend && { ...backend, address: settings.backendUrl?.host ?? '' },
      replicas: [own, ...others.map(statusOf)].slice(0, LISTED_REPLICAS),
      liveReplicas: shared === undefined ? 1 : listed && Math.max(listed.total, 1 + others.length),
    };
  }

  #own(degraded: readonly Degradable[], lastSeenAtMs: number): ReplicaStatus {
    const replicaId = this.#parts.stores.counting.shared?.redis.replicas.replicaId ?? 'embedded';
    return { ...this.#process, replicaId, isThis: true, lastSeenAtMs, degraded };
  }

  async #readPostgres(): Promise<PostgresStatus> {
    const { stores, settings, clock } = this.#parts;
    const isEmbedded = settings.databaseUrl === null;
    const probed = await probe(clock, () => stores.records.ping());
    const described = probed.isReachable
      ? await inTime(stores.records.describe()).catch(() => undefined)
      : undefined;
    return {
      ...probed,
      isEmbedded,
      version: described?.version,
      migrations: described && { applied: described.applied, pending: described.pending },
    };
  }

  async #readRedis({ redis }: Shared): Promise<RedisStatus> {
    const { settings, clock } = this.#parts;
    const probed = await probe(
      clock,
      () => redis.ping(),
      (error) => redis.lastFailure() ?? error,
    );
    const servers = probed.isReachable ? await inTime(redis.describeServers()).catch(() => []) : [];
    return { ...probed, mode: settings.redisMode, servers };
  }

  async #readUsage(): Promise<UsageStatus> {
    const { usage } = this.#parts;
    const { lastDoneAtMs } = usage.stats.flusher;
    return {
      flushIntervalMs: usage.flushIntervalMs,
      oldestPendingAtMs: await inTime(usage.pending.oldestAtMs()).then(
        (atMs) => atMs ?? null,
        () => undefined,
      ),
      lastFlushAtMs: lastDoneAtMs === 0 ? undefined : lastDoneAtMs,
    };
  }

  /** Null if there is none. */
  async #readBackend(): Promise<Reachability | null> {
    const { settings, clock } = this.#parts;
    const { backendUrl } = settings;
    return backendUrl && probe(clock, () => probeConnection(backendUrl, RESPONSE_DEADLINE_MS));
  }

  #degraded(
    {
      postgres,
      redis,
      backend,
      usage,
    }: Pick<SystemReport, 'postgres' | 'redis' | 'usage'> & {
      readonly backend: Reachability | null;
    },
    nowMs: number,
  ): readonly Degradable[] {
    const { oldestPendingAtMs, flushIntervalMs } = usage;
    const latestMs = nowMs - 2 * flushIntervalMs - FLUSH_MARGIN_MS;
    const degraded: Readonly<Record<Degradable, boolean>> = {
      postgres: postgres.fault !== undefined,
      redis: redis?.fault !== undefined,
      limiter: this.#isLimiterDegraded(),
      usage: typeof oldestPendingAtMs === 'number' && oldestPendingAtMs < latestMs,
      backend: backend?.isReachable === false,
    };
    return namesOf(degraded);
  }

  /** Uses only the last known state: a heartbeat must not wait for a store that does not respond. */
  #lastDegraded(): readonly Degradable[] {
    const { stores, usage, isBackendUnreachable } = this.#parts;
    const { postgres, redis } = stores.readiness.last().components;
    const { flusher } = usage.stats;
    return namesOf({
      postgres: faultOf(postgres) !== undefined,
      redis: faultOf(redis) !== undefined,
      limiter: this.#isLimiterDegraded(),
      usage: flusher.lagMs > usage.flushIntervalMs + FLUSH_MARGIN_MS,
      backend: isBackendUnreachable(),
    });
  }

  #isLimiterDegraded(): boolean {
    return this.#parts.stores.counting.shared?.failureMode.isDegraded ?? false;
  }
}

function namesOf(degraded: Readonly<Record<Degradable, boolean>>): readonly Degradable[] {
  return (Object.keys(degraded) as readonly Degradable[]).filter((name) => degraded[name]);
}

function statusOf({
  replicaId,
  lastSeenAtMs,
  description,
}: Awaited<ReturnType<Shared['redis']['replicas']['list']>>['replicas'][number]): ReplicaStatus {
  return { replicaId, lastSeenAtMs, isThis: false, ...readDescription(description) };
}

function faultOf(state: string | undefined): string | undefined {
  return state === 'ok' ? undefined : state;
}

async function probe(
  clock: Clock,
  check: () => Promise<void>,
  causeOf = (error: unknown) => error,
): Promise<Reachability> {
  const startedAtMs = clock.monotonicMs();
  try {
    await inTime(check());
    const latencyMs = Math.round((clock.monotonicMs() - startedAtMs) * 100) / 100;
    return { isReachable: true, latencyMs, fault: undefined };
  } catch (error) {
    return { isReachable: false, latencyMs: undefined, fault: failureReason(causeOf(error)) };
  }
}

/** Rejects if there is no result in time: a store that hangs must not delay the state of the others. */
function inTime<Result>(result: Promise<Result>): Promise<Result> {
  return withinDeadline(result, RESPONSE_DEADLINE_MS, () => new Error('no response: timed out'));
}
