import type { FailedCredentials } from '../../http/credentials/failed-credentials.ts';
import type { RequestIds } from '../../http/request-id.ts';
import type { KeyCache } from '../../keys/cache/key-cache.ts';
import { KeyOrigins } from '../../keys/cache/key-origins.ts';
import { KeyRevalidator } from '../../keys/cache/key-revalidator.ts';
import type { KeyRepository } from '../../keys/key-repository.ts';
import { PreviousSecretUses } from '../../keys/secrets/previous-secret-uses.ts';
import type { SecretRedactor } from '../../keys/secrets/secret-redactor.ts';
import type { SecretRepository } from '../../keys/secrets/secret-repository.ts';
import { CostSettler } from '../../limiter/cost-settler.ts';
import type { ThresholdWatch } from '../../limiter/threshold-watch.ts';
import type { RequestTracing } from '../../observability/tracing.ts';
import { gatewayVersion } from '../../platform/gateway-version.ts';
import { createProxy, type Proxy as ProxiedSide } from '../../proxy/pipeline.ts';
import type { ProxyOptions } from '../../proxy/proxy-options.ts';
import type { Usage } from '../../usage/create-usage.ts';
import { CLOSE_DEADLINE_MS, type ReplicaContext } from '../replica-context.ts';
import type { RequestObservers } from '../request-observers.ts';
import type { Counting } from '../stores/counting.ts';
import type { RecordChangePaths } from './wire-changes.ts';

/** What the proxied side of a replica is built from. */
export interface ProxyParts {
  readonly records: ProxyRecords;
  readonly counting: Pick<Counting, 'limiter' | 'counters' | 'changes' | 'shared'>;
  readonly keys: KeyCache;
  readonly changes: Pick<RecordChangePaths, 'versions' | 'follow'>;
  readonly usage: Pick<Usage, 'recorder'>;
  readonly redactor: SecretRedactor;
  readonly requestIds: RequestIds;
  readonly failedCredentials: FailedCredentials;
  readonly observers: Pick<RequestObservers, 'proxied'>;
  /** Undefined: no threshold is watched. */
  readonly thresholds?: ThresholdWatch | undefined;
  /** The most connections to the backend for upgrades. */
  readonly maxUpgrades: number;
}

/** The records that the proxied side reads and writes, besides the keys of requests. */
export interface ProxyRecords {
  readonly keys: Pick<KeyRepository, 'findOriginEntries' | 'findOutdated'>;
  readonly secrets: Pick<SecretRepository, 'noteUses'>;
}

/** The proxied side, and the other parts that have metrics. */
export interface WiredProxy {
  readonly proxy: ProxiedSide;
  /** What the proxied side was built from, for other ports with the same decisions. */
  readonly options: ProxyOptions;
  readonly revalidator: KeyRevalidator;
  readonly costSettler: CostSettler;
}

/** Builds the proxied side and makes it follow changes to keys. */
export async function wireProxy(context: ReplicaContext, parts: ProxyParts): Promise<WiredProxy> {
  const { settings, platform, shutdown } = context;
  const { records, counting, keys, requestIds, failedCredentials, maxUpgrades, thresholds } = parts;
  const costSettler = new CostSettler(counting.counters, {
    thresholds,
    settleAlone: counting.shared?.settleAlone,
  });
  shutdown.add('settlement of costs', CLOSE_DEADLINE_MS, () => costSettler.stop());
  const keyOrigins = new KeyOrigins({ repository: records.keys, clock: platform.clock });
  const previousSecretUses = new PreviousSecretUses({ secrets: records.secrets, ...platform });
  shutdown.add('uses of previous secrets', CLOSE_DEADLINE_MS, () => previousSecretUses.stop());
  const options: ProxyOptions = {
    ...settings,
    dropsSessionCookies: settings.oidcIssuer !== null,
    maxUpgrades,
    previousSecretUses,
    costSettler,
    thresholds,
    keys,
    keyOrigins,
    failedCredentials,
    limiter: counting.limiter,
    usage: parts.usage.recorder,
    clock: platform.clock,
    requestIds,
    tracing: await wireTracing(context, parts.redactor),
    observe: parts.observers.proxied,
    onFault: (error) => platform.log.error({ err: error }, 'a request met a fault of the gateway'),
  };
  const proxy = createProxy(options);
  shutdown.add('backend connections', CLOSE_DEADLINE_MS, () => proxy.destroy());
  const revalidator = followKeyChanges(context, { ...parts, keyOrigins, proxy });
  return { proxy, options, revalidator, costSettler };
}

/** Undefined if tracing is off. */
async function wireTracing(
  { settings, platform, shutdown }: ReplicaContext,
  redactor: SecretRedactor,
): Promise<RequestTracing | undefined> {
  if (settings.tracing === null) return undefined;
  // Imported only here, so that a gateway without tracing does not load OpenTelemetry.
  const { OpenTelemetryTracing } = await import('../../observability/open-telemetry-tracing.ts');
  const tracing = await OpenTelemetryTracing.start({
    ...settings.tracing,
    ...platform,
    backendUrl: settings.backendUrl,
    version: gatewayVersion(),
    mask: (text) => redactor.masked(text),
  });
  shutdown.add('tracing', CLOSE_DEADLINE_MS, () => tracing.stop());
  return tracing;
}

interface KeyFollowers extends Pick<ProxyParts, 'records' | 'counting' | 'keys' | 'changes'> {
  readonly keyOrigins: KeyOrigins;
  readonly proxy: ProxiedSide;
}

/** Drops changed keys from caches and rechecks their long uses: on each published change, and by regular checks for missed ones. */
function followKeyChanges(
  { platform, shutdown }: ReplicaContext,
  { records, counting, keys, changes, keyOrigins, proxy }: KeyFollowers,
): KeyRevalidator {
  const forget = (keyId: string) => {
    keys.drop(keyId);
    keyOrigins.expire();
    proxy.recheckUsesOf(keyId);
  };
  const revalidator = new KeyRevalidator({
    cache: keys,
    repository: records.keys,
    versions: changes.versions,
    held: () => proxy.usedKeys,
    onOutdated: forget,
    ...platform,
  });
  revalidator.start();
  shutdown.add('checks of cached keys', CLOSE_DEADLINE_MS, () => revalidator.stop());
  counting.changes.onChange(forget);
  counting.changes.onReset(() => {
    proxy.recheckUses();
    revalidator.checkSoon();
  });
  changes.follow({
    onRead: (changed, untilMs) => {
      keys.follow(changed, untilMs);
      if (changed.length === 0) return;
      keyOrigins.expire();
      for (const copy of proxy.usedKeys) if (keys.isOutdated(copy)) proxy.recheckUsesOf(copy.keyId);
    },
    onMissed: () => {
      keys.distrust();
      proxy.recheckUses();
    },
  });
  return revalidator;
}
