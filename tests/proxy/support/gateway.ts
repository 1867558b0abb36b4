import { pino } from 'pino';
import type { ListenerParts } from '../../../src/app/open-listeners.ts';
import type { RequestIds } from '../../../src/http/request-id.ts';
import type { KeySnapshot, PlanSnapshot } from '../../../src/keys/consumer-key.ts';
import type { CostSettler } from '../../../src/limiter/cost-settler.ts';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.ts';
import { limitsOfPlan } from '../../../src/plans/limits-of-plan.ts';
import type { PlanTerms } from '../../../src/plans/plan.ts';
import { systemRandom } from '../../../src/platform/random.ts';
import type { Proxy as ProxiedSide } from '../../../src/proxy/pipeline.ts';
import type { ExchangeSummary } from '../../../src/proxy/steps/record.ts';
import { createSecret } from '../../../src/secrets/secret-format.ts';
import { CLIENT_TIMEOUTS } from '../../../src/server/connections/client-timeouts.ts';
import type { ConnectionLimit } from '../../../src/server/connections/connection-limit.ts';
import type { CompletedRequest, UsageRecorder } from '../../../src/usage/usage-buffer.ts';
import { InProcessGateway, type TestSettings } from '../../support/in-process-gateway.ts';
import { until } from '../../support/until.ts';
import { InMemoryKeys } from './in-memory-keys.ts';
import { RawPeer } from './raw-peer.ts';

/** What a test may change of a gateway. */
export interface GatewaySettings extends TestSettings {
  readonly timeouts?: Partial<typeof CLIENT_TIMEOUTS>;
  /** On the port of proxied requests; undefined: management is on a separate one. */
  readonly management?: ListenerParts['management'];
  readonly requestIds?: RequestIds;
  readonly uploadRate?: ListenerParts['uploadRate'];
  readonly downloadRate?: ListenerParts['downloadRate'];
  readonly limiter?: RateLimiter;
  readonly usage?: UsageRecorder;
}

/** One key may have all connections to the backend, unless a test is about shares. */
const BACKEND = { backendTimeoutMs: 10_000, backendConnections: 16 };

/** A plan of these terms. */
export function planOf(terms: Partial<PlanTerms>): PlanSnapshot {
  const whole = { limit: 1000, period: 'hour', additionalLimits: [], costs: [], ...terms };
  return { id: 'test-plan', limits: limitsOfPlan(whole, {}, 'insensitive') };
}

/** A plan of `limit` requests in `periodText`. */
export function plan(limit: number, periodText = 'hour'): PlanSnapshot {
  return planOf({ limit, period: periodText });
}

/** The proxied side of a gateway, with its keys and counts in this process. Two keys exist, with the secrets `secret` and `otherSecret`. */
export class TestGateway {
  readonly secret = createSecret('tg', systemRandom);
  readonly otherSecret = createSecret('tg', systemRandom);
  /** What was recorded for the keys' statistics, in order. */
  readonly recorded: CompletedRequest[] = [];
  /** What was observed of all requests, in order. */
  readonly observed: ExchangeSummary[] = [];
  readonly clients: RawPeer[] = [];
  /** What it logged as an error. */
  readonly faults: string[] = [];
  /** Keeps this replica from hearing of changes. */
  isFeedSilent = false;
  readonly keyStore: InMemoryKeys;
  readonly #gateway: InProcessGateway;
  readonly #settings: GatewaySettings;
  #wired:
    | { readonly proxy: ProxiedSide; readonly costSettler: CostSettler; readonly port: number }
    | undefined;

  private constructor(backendUrl: string, settings: GatewaySettings) {
    const { management, requestIds, limiter, ...changed } = settings;
    const { backendConnections = BACKEND.backendConnections } = changed;
    this.#settings = settings;
    this.#gateway = new InProcessGateway({
      settings: {
        ...BACKEND,
        backendConnectionsPerKey: backendConnections,
        ...changed,
        backendUrl: new URL(backendUrl),
        adminPort: management === undefined ? 0 : null,
      },
      ...(requestIds !== undefined && { requestIds }),
      ...(limiter !== undefined && { limiter }),
      isFeedSilent: () => this.isFeedSilent,
      log: pino({ level: 'error' }, { write: (line: string) => void this.faults.push(faultOf(line)) }),
    });
    this.keyStore = new InMemoryKeys(this.#gateway.counting.versions);
    this.keyStore.snapshots.set(this.secret, snapshot('key_one'));
    this.keyStore.snapshots.set(this.otherSecret, snapshot('key_two'));
  }

  /** The connections of the public port. */
  get connectionLimit(): ConnectionLimit {
    return this.#gateway.limits.public;
  }

  static async start(backendUrl: string, settings: GatewaySettings = {}): Promise<TestGateway> {
    const gateway = new TestGateway(backendUrl, settings);
    gateway.#wired = await gateway.#wire();
    return gateway;
  }

  async #wire() {
    const {
      management = (_req, res) => void res.end(),
      timeouts,
      uploadRate,
      downloadRate,
      usage,
    } = this.#settings;
    const { proxy, costSettler } = await this.#gateway.proxied({
      records: this.keyStore.records,
      keys: this.keyStore.cache(),
      usage: { recorder: usage ?? { record: (request) => this.recorded.push(request) } },
      observers: { proxied: (summary) => this.observed.push(summary) },
    });
    const { port } = await this.#gateway.listen({
      proxy,
      management,
      observers: { rejected: () => {}, selfServed: () => {} },
      timeouts: { ...CLIENT_TIMEOUTS, ...timeouts },
      uploadRate,
      downloadRate,
    });
    return { proxy, costSettler, port };
  }

  get port(): number {
    return this.#opened.port;
  }

  get proxy(): ProxiedSide {
    return this.#opened.proxy;
  }

  get costSettler(): CostSettler {
    return this.#opened.costSettler;
  }

  get #opened() {
    if (this.#wired === undefined) throw new Error('the gateway has not started yet');
    return this.#wired;
  }

  /** Changes the key that `secret` names, as the management interface would: at once, and with a new version. */
  change(changes: Partial<KeySnapshot>, secret = this.secret): Promise<void> {
    return this.keyStore.change(secret, changes);
  }

  /** Lets only pages of these origins use the key that `secret` names; null = any. */
  allowOrigins(entries: readonly string[] | null, secret = this.secret): Promise<void> {
    return this.keyStore.allowOrigins(secret, entries);
  }

  /** Deletes the key that `secret` names. */
  delete(secret = this.secret): Promise<void> {
    return this.keyStore.delete(secret);
  }

  /** A connection to the public port. With `goesOn` it may send after the gateway has ended it. */
  async connect(goesOn = false): Promise<RawPeer> {
    const client = await RawPeer.connect(this.port, goesOn);
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

  /** Stops as a process does: what is not done after `shutdownDrainMs` is cut. */
  close(): Promise<void> {
    return this.#gateway.stop();
  }

  async stop(): Promise<void> {
    for (const client of this.clients) client.destroy();
    await this.close();
  }
}

/** What a line of the log says of an error. */
function faultOf(line: string): string {
  const { msg, err } = JSON.parse(line) as {
    readonly msg: string;
    readonly err?: { readonly message: string };
  };
  return err === undefined ? msg : `${msg}: ${err.message}`;
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
