import { BlockList } from 'node:net';
import {
  createPublicServer,
  PUBLIC_TIMEOUTS,
  type PublicServerOptions,
} from '../../../src/http/public-server.ts';
import { RequestIds } from '../../../src/http/request-id.ts';
import type { GrantedPlan, KeyGrant } from '../../../src/keys/consumer-key.ts';
import { KeyDirectory } from '../../../src/keys/key-directory.ts';
import { createSecret } from '../../../src/keys/secret-format.ts';
import { InProcessRateLimiter } from '../../../src/limiter/in-process-rate-limiter.ts';
import { InProcessRecordVersions } from '../../../src/limiter/in-process-record-versions.ts';
import { parsePeriod } from '../../../src/limiter/period.ts';
import { WindowTable } from '../../../src/limiter/window-table.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { systemRandom } from '../../../src/platform/random.ts';
import { createProxy, type Proxy as ProxiedSide, type ProxyOptions } from '../../../src/proxy/pipeline.ts';
import type { ExchangeSummary } from '../../../src/proxy/summary.ts';
import type { CompletedRequest } from '../../../src/usage/usage.ts';
import { until } from '../../support/until.ts';
import { RawPeer } from './raw-peer.ts';

/** What a test may change of a gateway. */
export interface GatewaySettings extends Partial<ProxyOptions> {
  readonly timeouts?: Partial<typeof PUBLIC_TIMEOUTS>;
  readonly management?: NonNullable<PublicServerOptions['management']>;
}

/** A plan of `limit` requests in `periodText`. */
export function plan(limit: number, periodText = 'hour'): GrantedPlan {
  const period = parsePeriod(periodText);
  if (period === undefined) throw new Error(`no period: ${periodText}`);
  return { id: 'test-plan', limit, period, periodText };
}

/** The proxied side of a gateway, whole, with its records and counts in this process. Two keys exist: `secret` and `otherSecret`. */
export class TestGateway {
  readonly secret = createSecret('tg', systemRandom);
  readonly otherSecret = createSecret('tg', systemRandom);
  /** What was recorded for the keys' statistics, in order. */
  readonly recorded: CompletedRequest[] = [];
  /** What was observed of all requests, in order. */
  readonly observed: ExchangeSummary[] = [];
  /** Heads that were refused before anything looked at them. */
  readonly refused: string[] = [];
  /** Keys by secret, as the record store has them. */
  readonly grants = new Map<string, KeyGrant>();
  readonly clients: RawPeer[] = [];
  /** Makes the record store fail. */
  isStoreDown = false;
  /** Keeps this replica from being told of changes. */
  isFeedSilent = false;
  readonly versions: InProcessRecordVersions;
  readonly directory: KeyDirectory;
  readonly proxy: ProxiedSide;
  readonly #server: ReturnType<typeof createPublicServer>;
  #port = 0;

  private constructor(backendUrl: string, { timeouts, management, ...settings }: GatewaySettings) {
    const table = new WindowTable();
    this.versions = new InProcessRecordVersions(table, systemClock);
    const read = async <Found>(find: () => Found): Promise<Found> => {
      if (this.isStoreDown) throw new Error('the record store is down');
      return find();
    };
    this.directory = new KeyDirectory({
      repository: {
        findGrantsByLookup: (lookups) =>
          read(() =>
            lookups.flatMap((lookup) => {
              const grant = this.grants.get(lookup.toString());
              return grant === undefined ? [] : [{ lookup, grant }];
            }),
          ),
        findGrantById: (keyId) =>
          read(() => [...this.grants.values()].find((grant) => grant.keyId === keyId)),
      },
      vault: { lookups: (secret) => [Buffer.from(secret)] },
      clock: systemClock,
    });
    this.proxy = createProxy({
      backendUrl: new URL(backendUrl),
      backendTimeoutMs: 10_000,
      backendConnections: 16,
      keys: this.directory,
      limiter: new InProcessRateLimiter(table, systemClock),
      usage: { record: (request) => this.recorded.push(request) },
      clock: systemClock,
      requestIds: new RequestIds(systemRandom, () => false),
      customerIdHeader: 'x-customer-id',
      forwardAuthorization: true,
      trustedProxies: new BlockList(),
      corsAllowedOrigins: [],
      observe: (summary) => this.observed.push(summary),
      ...settings,
    });
    this.versions.onChange((keyId) => {
      if (this.isFeedSilent) return;
      this.directory.drop(keyId);
      this.proxy.recheckUpgradesOf(keyId);
    });
    this.#server = createPublicServer({
      proxied: this.proxy,
      timeouts: { ...PUBLIC_TIMEOUTS, ...timeouts },
      onRefused: (error) => this.refused.push(error.code),
      ...(management === undefined ? {} : { management }),
    });
    this.grants.set(this.secret, grant('key_one'));
    this.grants.set(this.otherSecret, grant('key_two'));
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
  async change(changes: Partial<KeyGrant>, secret = this.secret): Promise<void> {
    const before = this.grants.get(secret);
    if (before === undefined) throw new Error('no such key');
    const after = { ...before, ...changes, version: `${Number.parseInt(before.version, 10) + 1}.0` };
    await this.versions.announce([before.keyId]);
    this.grants.set(secret, after);
    await this.versions.settle([{ keyId: after.keyId, version: after.version }]);
  }

  /** Deletes the key that `secret` names. */
  async delete(secret = this.secret): Promise<void> {
    const before = this.grants.get(secret);
    if (before === undefined) throw new Error('no such key');
    await this.versions.announce([before.keyId]);
    this.grants.delete(secret);
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
    return [
      `${requestLine} HTTP/1.1`,
      'Host: api.example.com',
      `Authorization: Bearer ${this.secret}`,
      ...lines,
      '',
      '',
    ].join('\r\n');
  }

  /** Resolves when no request has a backend connection and none waits for one. */
  async settled(): Promise<void> {
    await until(() => this.proxy.backendLoad.busy === 0 && this.proxy.backendLoad.waiting === 0);
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

function grant(keyId: string): KeyGrant {
  return { keyId, version: '1.0', enabled: true, expiresAtMs: null, plan: plan(1_000_000) };
}
