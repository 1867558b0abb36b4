import type { Settings } from './config.ts';
import { maskedSettings } from './config.ts';
import { FailedCredentials } from './http/failed-credentials.ts';
import { identified } from './http/identified-app.ts';
import type { OpsSources } from './http/ops-server.ts';
import { createPublicServer } from './http/public-server.ts';
import { RequestIds } from './http/request-id.ts';
import { KeyDirectory } from './keys/key-directory.ts';
import { KeyService } from './keys/key-service.ts';
import { SecretScreen } from './keys/secret-screen.ts';
import { SecretVault } from './keys/secret-vault.ts';
import { createManagementApp } from './management/management-app.ts';
import { createMetrics } from './observability/metrics.ts';
import { Readiness } from './observability/readiness.ts';
import { ReadinessWatch } from './observability/readiness-watch.ts';
import { startTracing } from './observability/start-tracing.ts';
import type { MetricsSnapshot } from './observability/worker-metrics.ts';
import { openCounting, openRecordStore } from './open-stores.ts';
import { PlanService } from './plans/plan-service.ts';
import { Lifecycle } from './platform/lifecycle.ts';
import { readOrMakeLocalSecrets } from './platform/local-secrets.ts';
import { createBulkLogger } from './platform/logger.ts';
import type { Platform } from './platform/platform.ts';
import { createProxy } from './proxy/pipeline.ts';
import { RecordsPreparation } from './records-preparation.ts';
import { observeRequests } from './request-observers.ts';
import { gatewayReadings, gatewayVersion, redisCallBuckets } from './service-metrics.ts';
import { PostgresUsageHistory } from './storage/postgres/postgres-usage-history.ts';
import { createUsage } from './usage/create-usage.ts';

/** A replica that runs in this process, but for its ops port. */
export interface Replica {
  /** The ports that it listens on. */
  readonly port: number;
  readonly adminPort: number | null;
  /** For the ops port, which outlives the replica so that it can tell how it stops. */
  readonly ops: OpsSources & { readonly snapshot: () => Promise<MetricsSnapshot> };
  /** Resolves when every component answers. */
  ready(): Promise<void>;
  /**
   * Not ready any more, then, after `SHUTDOWN_DELAY_MS`, no new connections; requests in flight end within `SHUTDOWN_DRAIN_MS`; usage is
   * written; everything is closed. Resolves with whether all went well. Never rejects.
   */
  stop(): Promise<boolean>;
}

/** Longest that usage may take to be written, and each store to be closed, at the stop. Milliseconds. */
const CLOSE_DEADLINE_MS = 5000;
/** Longest that a component may take to answer readiness. Milliseconds. */
const CHECK_DEADLINE_MS = 2000;
/** Postgres look-ups of keys that run together, for new and for changed keys each. */
const LOOK_UPS = 4;

/**
 * Builds a replica and starts it. Stores that are away do not keep it from starting: it is ready once they answer. Several workers share
 * their ports. Rejects when a port can't be had.
 */
export async function startReplica(settings: Settings, platform: Platform): Promise<Replica> {
  const { clock, random, log } = platform;
  log.info({ settings: maskedSettings(settings) }, 'starting');
  const lifecycle = new Lifecycle(log);
  try {
    const records = await openRecordStore(settings, platform);
    lifecycle.add('records', CLOSE_DEADLINE_MS, () => records.close());
    const counting = openCounting(settings, platform);
    lifecycle.add('counting', CLOSE_DEADLINE_MS, () => counting.close());
    const { limiter, versions, changes } = counting;

    const preparation = new RecordsPreparation(records, settings, log);
    lifecycle.add('preparation of the records', CLOSE_DEADLINE_MS, () => preparation.stop());
    const readiness = new Readiness(
      [preparation, ...(counting.component ? [counting.component] : [])],
      CHECK_DEADLINE_MS,
    );
    const readinessWatch = new ReadinessWatch(readiness, platform);
    lifecycle.add('readiness watch', CLOSE_DEADLINE_MS, () => readinessWatch.stop());
    readinessWatch.start();

    const { rootTokens, encryptionKeys } = secretsOf(settings, platform);
    const screen = new SecretScreen(rootTokens);
    const mask = (text: string): string => screen.masked(text);
    const usage = createUsage({
      mask,
      live: counting.liveUsage,
      history: new PostgresUsageHistory(records.db),
      retentionDays: settings.usageRetentionDays,
      ...platform,
    });
    lifecycle.add('usage', 2 * CLOSE_DEADLINE_MS, async () => void (await usage.stop(CLOSE_DEADLINE_MS)));
    usage.start();
    preparation.start(() => usage.startPruning());

    const vault = new SecretVault(encryptionKeys, random);
    const directory = new KeyDirectory({ repository: records.keys, vault, clock, maxLookups: LOOK_UPS });

    const failedCredentials = new FailedCredentials({ clock, trustedProxies: settings.trustedProxies });
    const managementApp = createManagementApp({
      keys: new KeyService({
        repository: records.keys,
        versions,
        vault,
        clock,
        random,
        keyPrefix: settings.keyPrefix,
        reveal: settings.secretReveal,
        eraseUsage: (keyId) => usage.eraser.erase(keyId),
      }),
      plans: new PlanService({
        repository: records.plans,
        versions,
        clock,
        defaultPlanId: settings.defaultPlanId,
      }),
      limiter,
      usage: usage.reader,
      rootTokens,
      failedCredentials,
      clock,
      log,
    });

    const version = gatewayVersion();
    const requestIds = new RequestIds(random, (text) => screen.holds(text));
    const observers = observeRequests(settings, { clock, log, bulkLogger: createBulkLogger, mask });
    lifecycle.add('access log', CLOSE_DEADLINE_MS, () => observers.flush());
    const { tracing: traced, backendUrl } = settings;
    const tracing =
      traced === null ? undefined : await startTracing({ ...traced, backendUrl, version, log, mask });
    if (tracing !== undefined) lifecycle.add('tracing', CLOSE_DEADLINE_MS, () => tracing.stop());
    const proxy = createProxy({
      ...settings,
      keys: directory,
      failedCredentials,
      limiter,
      usage: usage.recorder,
      clock,
      requestIds,
      tracing,
      observe: observers.proxied,
    });
    changes.onChange((keyId) => {
      directory.drop(keyId);
      proxy.recheckUpgradesOf(keyId);
    });
    changes.onReset(() => proxy.recheckUpgrades());
    lifecycle.add('backend connections', CLOSE_DEADLINE_MS, () => proxy.destroy());

    const parts = { counting, keys: directory, usage, proxy, readiness, version };
    const registry = createMetrics({
      requests: observers.metrics,
      readings: [...gatewayReadings(parts), ...observers.readings],
      buckets: redisCallBuckets(counting),
    });
    const management = identified(managementApp, { requestIds, clock, answered: observers.managed });
    const { shutdownDrainMs, adminPort } = settings;
    const sharesPort = settings.workers > 1;
    const drainDeadlineMs = shutdownDrainMs + CLOSE_DEADLINE_MS;
    const admin = adminPort === null ? null : createPublicServer({ management, sharesPort });
    const adminAddress =
      admin === null || adminPort === null ? null : await admin.listen(adminPort, settings.host);
    if (admin !== null) lifecycle.add('admin port', drainDeadlineMs, () => admin.close(shutdownDrainMs));
    const open = createPublicServer({
      proxied: proxy,
      sharesPort,
      onRefused: observers.refused,
      ...(adminPort === null && { management }),
    });
    const address = await open.listen(settings.port, settings.host);
    lifecycle.add('public port', drainDeadlineMs, () => open.close(shutdownDrainMs));

    const ports = { port: address.port, adminPort: adminAddress?.port ?? null };
    return {
      ...ports,
      ops: {
        readiness: () => readiness.report(),
        metrics: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
        snapshot: () => registry.getMetricsAsJSON(),
      },
      ready: async () => {
        while (!(await readiness.report()).ready) await pause(20);
      },
      stop: async () => {
        readiness.drain();
        // Clients with a connection of their own, which no load balancer would move, leave while there is time.
        for (const server of [admin, open]) server?.announceClose();
        await pause(settings.shutdownDelayMs);
        return lifecycle.stop();
      },
    };
  } catch (error) {
    await lifecycle.stop();
    throw error;
  }
}

function secretsOf(
  settings: Settings,
  { random, log }: Platform,
): Pick<Settings, 'rootTokens' | 'encryptionKeys'> {
  const { rootTokens, encryptionKeys } = settings;
  if (rootTokens.length > 0 && encryptionKeys.length > 0) return settings;
  const local = readOrMakeLocalSecrets(settings.dataDir, random);
  log.warn({ file: local.file }, 'the root token and the encryption key that were not set are in this file');
  return {
    rootTokens: rootTokens.length > 0 ? rootTokens : [local.rootToken],
    encryptionKeys: encryptionKeys.length > 0 ? encryptionKeys : [local.encryptionKey],
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
