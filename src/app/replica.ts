// The room `app`: the composition root, which builds every part of one replica and connects them.
// In: the settings, the clock, randomness and the log.
// Out: a running replica: its listeners, its tasks, and a way to stop them in order.

import { setTimeout as pause } from 'node:timers/promises';
import type { DesiredState } from '../desired-state/desired-state.ts';
import { FailedCredentials } from '../http/credentials/failed-credentials.ts';
import { RequestIds } from '../http/request-id.ts';
import { KeyCache, type KeyCacheOptions } from '../keys/cache/key-cache.ts';
import { SecretRedactor } from '../keys/secrets/secret-redactor.ts';
import { KEY_REQUESTS } from '../observability/key-metrics.ts';
import { createMetrics, scrapeObjects, scrapeText } from '../observability/metrics.ts';
import type { Readiness } from '../observability/readiness.ts';
import type { SnapshotUse, WorkerSnapshot } from '../observability/worker-metrics.ts';
import { createBufferedLogger } from '../platform/buffered-logger.ts';
import { gatewayVersion } from '../platform/gateway-version.ts';
import type { Platform } from '../platform/platform.ts';
import { ShutdownOrder } from '../platform/process/shutdown-order.ts';
import type { StartFiles } from '../platform/process/start-files.ts';
import { SecretVault } from '../secrets/secret-vault.ts';
import { maskedSettings, type Settings } from '../settings/settings.ts';
import type { People } from '../sign-in/people.ts';
import type { Records } from '../storage/postgres/open-records.ts';
import { limitClients } from './client-limits.ts';
import { secretsOf } from './local-secrets.ts';
import { gatewayReadings, type MeasuredParts } from './metrics/gateway-metrics.ts';
import { redisCallBuckets } from './metrics/limiter-readings.ts';
import { type Listeners, openListeners } from './open-listeners.ts';
import type { OpsSources } from './ops/ops-server.ts';
import { CLOSE_DEADLINE_MS, type ReplicaContext } from './replica-context.ts';
import { observeRequests, type RequestObservers } from './request-observers.ts';
import { GatewayStatus, type GatewayStatusParts } from './status/gateway-status.ts';
import type { AuthorizeParts, WiredAuthorize } from './wiring/wire-authorize.ts';
import { wireChanges } from './wiring/wire-changes.ts';
import type { Sealing } from './wiring/wire-configurations.ts';
import { CONSOLE_DIRECTORY, wireManagement } from './wiring/wire-management.ts';
import type { WirePortal } from './wiring/wire-portal.ts';
import { wireProxy } from './wiring/wire-proxy.ts';
import { wireRecordTasks } from './wiring/wire-record-tasks.ts';
import { type Stores, wireStores } from './wiring/wire-stores.ts';

/** A replica that runs in this process, without its ops port. */
export interface Replica {
  /** The ports that it listens on. */
  readonly port: number;
  readonly adminPort: number | null;
  readonly authorizePort: number | null;
  /** For the ops port, which stays open until the replica has stopped, to show its state. */
  readonly ops: OpsSources & { readonly snapshot: (use: SnapshotUse) => Promise<WorkerSnapshot> };
  /**
   * Reports not ready at once. After `SHUTDOWN_DELAY_MS` it takes no new connections, lets requests in flight end within
   * `SHUTDOWN_DRAIN_MS`, writes usage and closes everything. Resolves with whether all of that succeeded. Never rejects.
   */
  stop(): Promise<boolean>;
}

/**
 * Builds a replica and starts it. It starts even if its stores are unavailable, and is ready once they respond. Several workers share
 * their ports. Rejects if a port can't be opened.
 */
export async function startReplica(
  settings: Settings,
  platform: Platform,
  files: StartFiles,
): Promise<Replica> {
  platform.log.info({ settings: maskedSettings(settings) }, 'starting');
  const shutdown = new ShutdownOrder(platform.log);
  try {
    return await wireReplica({ settings, platform, shutdown }, files);
  } catch (error) {
    await shutdown.stop();
    throw error;
  }
}

/** The stored keys, of which none is looked up by its secret while they can't be opened. */
function openKeys({ records: { keys }, preparation }: Stores): KeyCacheOptions['repository'] {
  return {
    findSnapshotsByLookup: async (lookups) => {
      preparation.requireOpenKeys();
      return keys.findSnapshotsByLookup(lookups);
    },
    findSnapshotsOrErrors: (keyIds) => keys.findSnapshotsOrErrors(keyIds),
  };
}

/** Starts the parts in this order; they stop in the reverse order. */
async function wireReplica(context: ReplicaContext, files: StartFiles): Promise<Replica> {
  const { settings } = context;
  const { clock } = context.platform;
  const secrets = wireSecrets(context);
  const { vault, redactor } = secrets;
  const desired = await configurationOf(settings, files);
  const portal = await portalWith(settings, files);
  const stores = await wireStores(context, vault);
  const changes = wireChanges(context, stores);
  const { usage, streams, thresholds, delivering, ...tasks } = wireRecordTasks(context, {
    ...{ ...secrets, stores, changes, desired },
  });
  const { records, readiness } = stores;
  const keys = new KeyCache({ repository: openKeys(stores), secrets: records.secrets, vault, clock });

  const shared = { ...wireRequestParts(context, redactor), usage, changes };
  const connectionLimits = limitClients(context);
  const proxied = await wireProxy(context, {
    ...{ ...shared, ...stores, keys, redactor, thresholds },
    maxUpgrades: connectionLimits.upgrades,
  });
  const authorize = await authorizePort(context, { ...shared, ...proxied });
  const people = await signIn(context, { records, vault });
  const apps = wireManagement(context, {
    ...{ ...shared, ...stores, ...secrets, ...tasks, streams, people },
    verifier: authorize?.verifier,
    system: announcedStatus(context, { ...shared, stores }),
    consoleDirectory: settings.console === 'on' ? CONSOLE_DIRECTORY : undefined,
  });

  const registry = metricsRegistry(shared.observers, {
    ...{ ...stores, ...proxied, usage, changes, keys, connectionLimits, delivering, clock },
    ...{ people, backendConnections: settings.backendConnections },
    version: gatewayVersion(),
  });
  const { proxy } = proxied;
  // A request that came before the connection to Redis would be decided without it.
  await stores.counting.firstAttempt();
  const listeners = await openListeners(context, {
    ...{ ...shared, ...apps, authorize, proxy, connectionLimits },
    portal: portal?.(context, shared),
  });
  // Before the listeners drain: a stream would keep them until the end of the deadline.
  context.shutdown.add('event streams', CLOSE_DEADLINE_MS, () => streams.stop());
  return startedReplica(context, { listeners, registry, readiness, observers: shared.observers });
}

/** Imports the port for other gateways only if there is one. */
async function authorizePort(
  context: ReplicaContext,
  parts: AuthorizeParts,
): Promise<WiredAuthorize | undefined> {
  if (context.settings.authorizePort === null) return undefined;
  const { wireAuthorize } = await import('./wiring/wire-authorize.ts');
  return wireAuthorize(context, parts);
}

/** Imports sign-in and its libraries only if there is an identity provider. */
async function signIn(
  context: ReplicaContext,
  parts: { readonly records: Records; readonly vault: SecretVault },
): Promise<People | undefined> {
  if (context.settings.oidcIssuer === null) return undefined;
  const { wireSignIn } = await import('./wiring/wire-sign-in.ts');
  return wireSignIn(context, parts);
}

/** Imports the portal, and reads its logo, only if it is on. */
async function portalWith(settings: Settings, files: StartFiles): Promise<WirePortal | undefined> {
  if (settings.portal === 'off') return undefined;
  const { preparePortal } = await import('./wiring/wire-portal.ts');
  return preparePortal(settings, files);
}

/** The vault that seals secrets, the root tokens, and the redactor that keeps secrets out of logs, traces and statistics. */
interface Secrets extends Sealing {
  readonly redactor: SecretRedactor;
}

function wireSecrets({ settings, platform }: ReplicaContext): Secrets {
  const { rootTokens, encryptionKeys } = secretsOf(settings, platform);
  return {
    rootTokens,
    redactor: new SecretRedactor({
      rootTokens: [...rootTokens, ...settings.authorizeTokens],
      keyPrefix: settings.keyPrefix,
    }),
    vault: new SecretVault(encryptionKeys, platform.random),
  };
}

/** Imports the reader only if there is a file: its YAML library takes a twentieth of the start time. */
async function configurationOf(
  { configFile, pathCase }: Settings,
  files: StartFiles,
): Promise<DesiredState | undefined> {
  if (configFile === null) return undefined;
  const { readConfigurationFile } = await import('./configuration-file.ts');
  return readConfigurationFile(configFile, pathCase, files);
}

/** What the requests of all ports share. */
interface RequestParts {
  readonly observers: RequestObservers;
  readonly requestIds: RequestIds;
  readonly failedCredentials: FailedCredentials;
}

function wireRequestParts(
  { settings, platform, shutdown }: ReplicaContext,
  redactor: SecretRedactor,
): RequestParts {
  const { clock, random } = platform;
  const mask = (text: string): string => redactor.masked(text);
  const observers = observeRequests(settings, { ...platform, bufferedLogger: createBufferedLogger, mask });
  shutdown.add('access log', CLOSE_DEADLINE_MS, () => observers.flush());
  return {
    observers,
    requestIds: new RequestIds(random, (text) => redactor.holds(text)),
    failedCredentials: new FailedCredentials({ clock, trustedProxies: settings.trustedProxies }),
  };
}

interface StatusParts extends Pick<GatewayStatusParts, 'stores' | 'usage'> {
  readonly observers: RequestObservers;
}

/** The status. From now on it is published to the other replicas. */
function announcedStatus(
  { settings, platform }: ReplicaContext,
  { stores, usage, observers }: StatusParts,
): GatewayStatus {
  const status = new GatewayStatus({
    ...{ stores, usage, settings, clock: platform.clock },
    isBackendUnreachable: () => observers.isBackendUnreachable,
  });
  status.announce();
  return status;
}

type MetricsRegistry = ReturnType<typeof createMetrics>;

function metricsRegistry(observers: RequestObservers, measured: MeasuredParts): MetricsRegistry {
  return createMetrics({
    requests: observers.metrics,
    readings: [...gatewayReadings(measured), ...observers.readings],
    buckets: redisCallBuckets(measured.counting),
  });
}

interface StartedParts {
  readonly listeners: Listeners;
  readonly registry: MetricsRegistry;
  readonly observers: RequestObservers;
  readonly readiness: Readiness;
}

function startedReplica(
  { settings, shutdown }: ReplicaContext,
  { listeners, readiness, ...measured }: StartedParts,
): Replica {
  return {
    port: listeners.port,
    adminPort: listeners.adminPort,
    authorizePort: listeners.authorizePort,
    ops: { readiness: () => readiness.report(), ...scrapes(measured) },
    stop: async () => {
      readiness.drain();
      // No load balancer moves a kept connection: clients must learn during the delay that it will close.
      listeners.announceClose();
      await pause(settings.shutdownDelayMs);
      return shutdown.stop();
    },
  };
}

function scrapes({
  registry,
  observers,
}: Pick<StartedParts, 'registry' | 'observers'>): Pick<Replica['ops'], 'metrics' | 'snapshot'> {
  return {
    metrics: async () => ({ contentType: registry.contentType, text: await scrapeText(registry) }),
    snapshot: async (use) => {
      const metrics = await scrapeObjects(
        registry,
        ({ name, type }) => name !== KEY_REQUESTS && (use === 'scrape' || type !== 'gauge'),
      );
      return { metrics, keys: observers.takeKeyCounts() };
    },
  };
}
