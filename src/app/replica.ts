import { maskedSettings, type Settings } from '../config/settings.ts';
import type { DesiredState } from '../desired-state/desired-state.ts';
import { FailedCredentials } from '../http/credentials/failed-credentials.ts';
import { RequestIds } from '../http/request-id.ts';
import { KeyCache } from '../keys/cache/key-cache.ts';
import { SecretRedactor } from '../keys/secrets/secret-redactor.ts';
import { SecretVault } from '../keys/secrets/secret-vault.ts';
import { createMetrics, scrapeObjects, scrapeText } from '../observability/metrics.ts';
import type { MetricsSnapshot } from '../observability/worker-metrics.ts';
import { createBulkLogger } from '../platform/logger.ts';
import type { Platform } from '../platform/platform.ts';
import { Lifecycle } from '../platform/process/lifecycle.ts';
import { limitClients } from './client-limits.ts';
import { CLOSE_DEADLINE_MS, type ReplicaContext } from './context.ts';
import { gatewayReadings, gatewayVersion, redisCallBuckets } from './gateway-metrics.ts';
import { secretsOf } from './local-secrets.ts';
import { openListeners } from './open-listeners.ts';
import type { OpsSources } from './ops/ops-server.ts';
import { observeRequests } from './request-observers.ts';
import { GatewayStatus } from './status/gateway-status.ts';
import { secretHints } from './wiring/secret-hints.ts';
import { wireAudit } from './wiring/wire-audit.ts';
import { configurationOfFile, wireConfigurations } from './wiring/wire-configurations.ts';
import { CONSOLE_DIRECTORY, wireManagement } from './wiring/wire-management.ts';
import { wireProxy } from './wiring/wire-proxy.ts';
import { wireStores } from './wiring/wire-stores.ts';
import { wireUsage } from './wiring/wire-usage.ts';

/** A replica that runs in this process, but for its ops port. */
export interface Replica {
  /** The ports that it listens on. */
  readonly port: number;
  readonly adminPort: number | null;
  /** For the ops port, which outlives the replica so that it can show how it stops. */
  readonly ops: OpsSources & { readonly snapshot: () => Promise<MetricsSnapshot> };
  /** Resolves when every component is ready. */
  ready(): Promise<void>;
  /**
   * Not ready any more, then, after `SHUTDOWN_DELAY_MS`, no new connections; requests in flight end within `SHUTDOWN_DRAIN_MS`; usage is
   * written; everything is closed. Resolves with whether all went well. Never rejects.
   */
  stop(): Promise<boolean>;
}

/**
 * Builds a replica and starts it. It starts without its stores, too, and is ready once they respond. Several workers share
 * their ports. Rejects when a port can't be had.
 */
export async function startReplica(settings: Settings, platform: Platform): Promise<Replica> {
  platform.log.info({ settings: maskedSettings(settings) }, 'starting');
  const lifecycle = new Lifecycle(platform.log);
  try {
    return await wireReplica({ settings, platform, lifecycle });
  } catch (error) {
    await lifecycle.stop();
    throw error;
  }
}

/** The parts in the order in which they start; they stop in the reverse order. */
async function wireReplica(context: ReplicaContext): Promise<Replica> {
  const { settings, platform, lifecycle } = context;
  const { clock, random, log } = platform;
  const { rootTokens, encryptionKeys } = secretsOf(settings, platform);
  const redactor = new SecretRedactor({ rootTokens, keyPrefix: settings.keyPrefix });
  const vault = new SecretVault(encryptionKeys, random);
  const desired = settings.configFile === null ? undefined : await configurationIn(settings.configFile);
  const stores = await wireStores(context, vault);
  const { records, counting, readiness } = stores;

  const usage = wireUsage(context, stores, redactor);
  const audit = wireAudit(context, stores);
  const hints = secretHints(records.hintlessKeys, vault, platform);
  lifecycle.add('hints of secrets', CLOSE_DEADLINE_MS, () => hints.stop());
  const configurations = wireConfigurations(context, stores, { vault, rootTokens });
  stores.preparation.start({
    configure: desired && configurationOfFile(context, configurations, desired),
    prepared: () => {
      usage.startPruning();
      audit.startPruning();
      hints.start();
    },
  });
  const keys = new KeyCache({ repository: records.keys, secrets: records.secrets, vault, clock });

  const mask = (text: string): string => redactor.masked(text);
  const observers = observeRequests(settings, { clock, log, bulkLogger: createBulkLogger, mask });
  lifecycle.add('access log', CLOSE_DEADLINE_MS, () => observers.flush());
  const shared = {
    usage,
    observers,
    requestIds: new RequestIds(random, (text) => redactor.holds(text)),
    failedCredentials: new FailedCredentials({ clock, trustedProxies: settings.trustedProxies }),
  };
  const connectionLimits = limitClients(context);
  const { proxy, revalidator, costSettler } = await wireProxy(context, {
    ...{ ...shared, ...stores, keys, redactor },
    maxUpgrades: connectionLimits.upgrades,
  });
  const system = new GatewayStatus({
    ...{ stores, usage, settings, clock },
    isBackendUnreachable: () => observers.isBackendUnreachable,
  });
  system.announce();
  const { management, selfService } = wireManagement(context, {
    ...shared,
    ...stores,
    configurations,
    vault,
    rootTokens,
    system,
    consoleDirectory: settings.console === 'on' ? CONSOLE_DIRECTORY : undefined,
  });

  const { backendConnections } = settings;
  const version = gatewayVersion();
  const measured = {
    counting,
    costSettler,
    keys,
    revalidator,
    usage,
    proxy,
    readiness,
    version,
    backendConnections,
    connectionLimits,
  };
  const registry = createMetrics({
    requests: observers.metrics,
    readings: [...gatewayReadings(measured), ...observers.readings],
    buckets: redisCallBuckets(counting),
  });
  const listeners = await openListeners(context, {
    ...{ ...shared, proxy, management, selfService },
    connectionLimits,
  });

  return {
    port: listeners.port,
    adminPort: listeners.adminPort,
    ops: { readiness: () => readiness.report(), ...scrapes(registry) },
    ready: async () => {
      while (!(await readiness.report()).ready) await pause(20);
    },
    stop: async () => {
      readiness.drain();
      // Clients that keep their connections, which no load balancer would move, leave while there is time.
      listeners.announceClose();
      await pause(settings.shutdownDelayMs);
      return lifecycle.stop();
    },
  };
}

/** Loads the reader where there is a file: its YAML library takes a twentieth of a start. */
async function configurationIn(file: string): Promise<DesiredState> {
  const { readConfigurationFile } = await import('./configuration-file.ts');
  return readConfigurationFile(file);
}

function scrapes(registry: ReturnType<typeof createMetrics>): Pick<Replica['ops'], 'metrics' | 'snapshot'> {
  return {
    metrics: async () => ({ contentType: registry.contentType, text: await scrapeText(registry) }),
    snapshot: () => scrapeObjects(registry),
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
