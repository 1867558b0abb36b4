import { BlockList } from 'node:net';
import { KeyCache } from '../../../src/keys/cache/key-cache.ts';
import { KeyOrigins } from '../../../src/keys/cache/key-origins.ts';
import type { KeySnapshot, PlanSnapshot } from '../../../src/keys/consumer-key.ts';
import { OriginList } from '../../../src/keys/origin-list.ts';
import { createSecret } from '../../../src/keys/secrets/secret-format.ts';
import { CostSettler } from '../../../src/limiter/cost-settler.ts';
import { InProcessRateLimiter } from '../../../src/limiter/in-process/in-process-rate-limiter.ts';
import { InProcessRecordVersions } from '../../../src/limiter/in-process/in-process-record-versions.ts';
import { InProcessWindowCounters } from '../../../src/limiter/in-process/in-process-window-counters.ts';
import { WindowTable } from '../../../src/limiter/in-process/window-table.ts';
import { limitsOfPlan } from '../../../src/plans/limits-of-plan.ts';
import type { PlanTerms } from '../../../src/plans/plan.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { systemRandom } from '../../../src/platform/random.ts';
import type { ExchangeSummary } from '../../../src/proxy/exchange-summary.ts';
import { createProxy, type Proxy as ProxiedSide } from '../../../src/proxy/pipeline.ts';
import type { ProxyOptions } from '../../../src/proxy/proxy-options.ts';
import {
  createPublicServer,
  PUBLIC_TIMEOUTS,
  type PublicServerOptions,
} from '../../../src/server/public-server.ts';
import type { CompletedRequest } from '../../../src/usage/usage.ts';
import { testRequestIds } from '../../support/request-ids.ts';
import { until } from '../../support/until.ts';
import { RawPeer } from './raw-peer.ts';

/** What a test may change of a gateway. */
export interface GatewaySettings extends Partial<ProxyOptions> {
  readonly timeouts?: Partial<typeof PUBLIC_TIMEOUTS>;
  readonly management?: NonNullable<PublicServerOptions['management']>;
  readonly requestIds?: PublicServerOptions['requestIds'];
  readonly uploadRate?: NonNullable<PublicServerOptions['uploadRate']>;
}

/** A plan of these terms. */
export function planOf(terms: Partial<PlanTerms>): PlanSnapshot {
  const whole = { limit: 1000, period: 'hour', additionalLimits: [], costs: [], ...terms };
  return { id: 'test-plan', limits: limitsOfPlan(whole, {}) };
}

/** A plan of `limit` requests in `periodText`. */
export function plan(limit: number, periodText = 'hour'): PlanSnapshot {
  return planOf({ limit, period: periodText });
}

/** The proxied side of a gateway, whole, with its records and counts in this process. Two keys exist: `secret` and `otherSecret`. */
export class TestGateway {
  readonly secret = createSecret('tg', systemRandom);
  readonly otherSecret = createSecret('tg', systemRandom);
  /** What was recorded for the keys' statistics, in order. */
  readonly recorded: CompletedRequest[] = [];
  /** Ids of keys whose previous secret was used. */
  readonly previousUses: string[] = [];
  /** What was observed of all requests, in order. */
  readonly observed: ExchangeSummary[] = [];
  /** Heads that were rejected before anything looked at them. */
  readonly rejected: string[] = [];
  /** Keys by secret, as the record store has them. */
  readonly snapshots = new Map<string, KeySnapshot>();
  /** What keys have in their `allowedOrigins`, by secret. */
  readonly #allowedOrigins = new Map<string, readonly string[]>();
  readonly clients: RawPeer[] = [];
  /** What was thrown where no request could be failed. */
  readonly faults: unknown[] = [];
  /** Makes the record store fail. */
  isStoreDown = false;
  /** How long the record store takes. Milliseconds. */
  storeDelayMs = 0;
  /** Keeps this replica from hearing of changes. */
  isFeedSilent = false;
  readonly versions: InProcessRecordVersions;
  readonly costSettler: CostSettler;
  readonly keyCache: KeyCache;
  readonly keyOrigins: KeyOrigins;
  readonly proxy: ProxiedSide;
  readonly #server: ReturnType<typeof createPublicServer>;
  #port = 0;

  private constructor(
    backendUrl: string,
    { timeouts, management, uploadRate, ...settings }: GatewaySettings,
  ) {
    const table = new WindowTable();
    const requestIds = settings.requestIds ?? testRequestIds();
    this.versions = new InProcessRecordVersions(table, systemClock);
    this.costSettler = new CostSettler(new InProcessWindowCounters(table, systemClock));
    const read = async <Found>(find: () => Found): Promise<Found> => {
      if (this.isStoreDown) throw new Error('the record store is down');
      if (this.storeDelayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.storeDelayMs));
      return find();
    };
    this.keyCache = new KeyCache({
      repository: {
        findSnapshotsByLookup: (lookups) =>
          read(() =>
            lookups.flatMap((lookup) => {
              const snapshot = this.snapshots.get(lookup.toString());
              return snapshot === undefined
                ? []
                : [{ lookup, snapshot, secretVersion: snapshot.secretVersion }];
            }),
          ),
        findSnapshotById: (keyId) =>
          read(() => [...this.snapshots.values()].find((snapshot) => snapshot.keyId === keyId)),
      },
      secrets: { importedSecrets: () => read(() => ({ version: 0, given: false, hashed: false })) },
      vault: { lookups: (secret) => [Buffer.from(secret)], digestLookups: () => [] },
      clock: systemClock,
      // Room is made for all of them at the start, which takes longer than most tests.
      maxEntries: 1000,
      maxUnknown: 1000,
    });
    this.keyOrigins = new KeyOrigins({
      repository: {
        findOriginEntries: (entries) =>
          read(() => entries.filter((entry) => [...this.#allowedOrigins.values()].flat().includes(entry))),
      },
      clock: systemClock,
    });
    this.proxy = createProxy({
      backendUrl: new URL(backendUrl),
      backendTimeoutMs: 10_000,
      backendConnections: 16,
      // One key may have them all, unless a test is about shares.
      backendConnectionsPerKey: settings.backendConnections ?? 16,
      onFault: (error) => this.faults.push(error),
      keys: this.keyCache,
      keyOrigins: this.keyOrigins,
      limiter: new InProcessRateLimiter(table, systemClock),
      costSettler: this.costSettler,
      usage: { record: (request) => this.recorded.push(request) },
      previousSecretUses: { note: (keyId) => this.previousUses.push(keyId) },
      clock: systemClock,
      requestIds,
      customerIdHeader: 'x-customer-id',
      endpointPatterns: [],
      forwardAuthorization: true,
      trustedProxies: new BlockList(),
      corsAllowedOrigins: [],
      observe: (summary) => this.observed.push(summary),
      ...settings,
    });
    this.versions.onChange((keyId) => {
      if (this.isFeedSilent) return;
      this.keyCache.drop(keyId);
      this.keyOrigins.expire();
      this.proxy.recheckUpgradesOf(keyId);
    });
    this.#server = createPublicServer({
      proxied: this.proxy,
      timeouts: { ...PUBLIC_TIMEOUTS, ...timeouts },
      requestIds,
      onRejected: (error) => this.rejected.push(error.code),
      ...(management === undefined ? {} : { management }),
      ...(uploadRate === undefined ? {} : { uploadRate }),
      onSlowUpload: () => this.proxy.counters.onTooSlow('upload'),
    });
    this.snapshots.set(this.secret, snapshot('key_one'));
    this.snapshots.set(this.otherSecret, snapshot('key_two'));
  }

  static async start(backendUrl: string, settings: GatewaySettings = {}): Promise<TestGateway> {
    const gateway = new TestGateway(backendUrl, settings);
    gateway.#port = (await gateway.#server.listen(0, '127.0.0.1')).port;
    return gateway;
  }

  get port(): number {
    return this.#port;
  }

  /** Changes the key that `secret` names, as the management interface would: at once, and with a new version. */
  async change(changes: Partial<KeySnapshot>, secret = this.secret): Promise<void> {
    const before = this.snapshots.get(secret);
    if (before === undefined) throw new Error('no such key');
    const after = { ...before, ...changes, version: `${Number.parseInt(before.version, 10) + 1}.0` };
    await this.versions.markStale([before.keyId]);
    this.snapshots.set(secret, after);
    await this.versions.publishVersion([{ keyId: after.keyId, version: after.version }]);
  }

  /** Lets only pages of these origins use the key that `secret` names; null = any. */
  async allowOrigins(entries: readonly string[] | null, secret = this.secret): Promise<void> {
    this.#allowedOrigins.set(secret, entries ?? []);
    const restrictions = entries && { addresses: null, origins: new OriginList(entries) };
    await this.change({ restrictions }, secret);
  }

  /** Deletes the key that `secret` names. */
  async delete(secret = this.secret): Promise<void> {
    const before = this.snapshots.get(secret);
    if (before === undefined) throw new Error('no such key');
    await this.versions.markStale([before.keyId]);
    this.snapshots.delete(secret);
    this.#allowedOrigins.delete(secret);
    await this.versions.retire(before.keyId);
  }

  /** A connection to the public port. */
  async connect(): Promise<RawPeer> {
    const client = await RawPeer.connect(this.#port);
    this.clients.push(client);
    return client;
  }

  /** Sends bytes on a new connection. */
  async send(bytes: string | Buffer): Promise<RawPeer> {
    const client = await this.connect();
    client.send(bytes);
    return client;
  }

  /** A request head with the first key, its other lines as given, and the empty line behind it. */
  head(requestLine: string, ...lines: readonly string[]): string {
    return this.headOf(this.secret, requestLine, ...lines);
  }

  /** The same with any key. */
  headOf(secret: string, requestLine: string, ...lines: readonly string[]): string {
    return [
      `${requestLine} HTTP/1.1`,
      'Host: api.example.com',
      `Authorization: Bearer ${secret}`,
      ...lines,
      '',
      '',
    ].join('\r\n');
  }

  /** Resolves when the gateway has read all that was sent to it before: it has responded to a later request on a new connection. */
  async catchUp(): Promise<void> {
    const later = await this.send('GET /later HTTP/1.1\r\nHost: a\r\n\r\n');
    await later.head();
  }

  /** Resolves when no request has a place with the backend any more. */
  async settled(): Promise<void> {
    await until(() => this.proxy.backendLoad.busy === 0 && this.proxy.backendPlaces === 0);
  }

  /** Closes as a stopping process does. */
  close(drainMs = 0): Promise<void> {
    return this.#server.close(drainMs);
  }

  async stop(): Promise<void> {
    for (const client of this.clients) client.destroy();
    await this.close();
    this.proxy.destroy();
  }
}

function snapshot(keyId: string): KeySnapshot {
  return {
    keyId,
    version: '1.0',
    enabled: true,
    expiresAtMs: null,
    plan: plan(1_000_000),
    restrictions: null,
    secretVersion: 0,
    previousSecret: null,
  };
}
