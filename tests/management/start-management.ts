import { once } from 'node:events';
import { createServer } from 'node:http';
import { expect } from '@jest/globals';
import { pino } from 'pino';
import supertest, { type Test } from 'supertest';
import type { ListenerParts } from '../../src/app/open-listeners.ts';
import { StoreUnavailable } from '../../src/errors.ts';
import type { FailedCredentials } from '../../src/http/credentials/failed-credentials.ts';
import type { RateLimiter } from '../../src/limiter/rate-limiter.ts';
import type { WindowCounters } from '../../src/limiter/window-counters.ts';
import type { SystemReport } from '../../src/management/system/system-report.ts';
import { SELF_SERVICE_PATH } from '../../src/paths/path-matcher.ts';
import type { PublicServer } from '../../src/server/public-server.ts';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import type { KeyUsage, UsageReader } from '../../src/usage/usage-counts.ts';
import { requireDocumented } from '../support/documented-responses.ts';
import { InProcessGateway, type TestSettings } from '../support/in-process-gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { createPostgresRecords } from '../support/records.ts';
import { testRequestIds } from '../support/request-ids.ts';

export const ROOT_TOKEN = 'the-root-token-of-the-management-tests';
export const OTHER_ROOT_TOKEN = 'a-second-root-token-that-is-valid-too';
/** All that a report may lack is missing from it. */
const SYSTEM: SystemReport = {
  atMs: Date.UTC(2026, 1, 3),
  version: '1.2.3',
  degraded: ['redis'],
  replicas: [
    {
      ...{ replicaId: 'one', isThis: true, lastSeenAtMs: Date.UTC(2026, 1, 3), startedAtMs: undefined },
      ...{ version: undefined, host: undefined, pid: undefined, workers: undefined, degraded: undefined },
    },
  ],
  liveReplicas: undefined,
  postgres: {
    ...{ isReachable: false, latencyMs: undefined, fault: 'not available' },
    ...{ isEmbedded: false, version: undefined, migrations: undefined },
  },
  redis: {
    ...{ isReachable: false, latencyMs: undefined, fault: 'not available' },
    ...{ mode: 'single', servers: [] },
  },
  usage: { flushIntervalMs: 1000, oldestPendingAtMs: undefined, lastFlushAtMs: undefined },
  backend: { address: 'backend:80', isReachable: true, latencyMs: 0.5, fault: undefined },
};
export const START_MS = Date.UTC(2026, 1, 3, 4, 5, 6, 789);
/** What a response shows of a key that was made with a name only. */
export const DEFAULT_KEY_FIELDS = {
  ...{ enabled: true, expiresAt: null, rateLimitId: null, externalId: null, tags: [], metadata: null },
  ...{ overrides: {}, allowedIps: null, allowedOrigins: null, selfService: [] },
  ...{ managedBy: null, lastUsedAt: null, rotation: null },
};
export const UNUSED: KeyUsage = {
  ...{ requests: 0, successful: 0, failed: 0 },
  ...{ lastUsedAtMs: null, endpoints: [], customers: [] },
};

/** Usage of which each key's is what `read` gives. */
export function usageThat(read: UsageReader['read']): UsageReader {
  return {
    read,
    totals: async (ids) => new Map(await Promise.all(ids.map(async (id) => [id, await read(id)] as const))),
  };
}

/** Counters whose store is down. */
export function unavailableCounters(): WindowCounters {
  const unavailable = () => Promise.reject(new StoreUnavailable('redis', new Error('unavailable')));
  return {
    read: unavailable,
    readAll: unavailable,
    settle: unavailable,
    passOnce: unavailable,
    grant: unavailable,
    reset: unavailable,
  };
}

type Method = 'get' | 'post' | 'patch' | 'delete' | 'put' | 'head' | 'options';

/** The management interface over real services: Postgres, and limits in the process. */
export interface TestManagement {
  readonly app: ListenerParts['management'];
  /** A request with the root token; `body` is sent as JSON. */
  send(method: Method, path: string, body?: object): Test;
  /** A request with nothing added. */
  bare(method: Method, path: string): Test;
  /** A request with the secret of an admin token. */
  sendAs(secret: string, method: Method, path: string, body?: object): Test;
  /** From now on jobs are worked on. */
  startJobs(): void;
  /** Opens the port of management alone, once, and resolves with it. */
  listen(): Promise<number>;
  createToken(fields?: object): Promise<{ readonly adminTokenId: string; readonly secret: string }>;
  createKey(name?: string): Promise<{ readonly id: string; readonly secret: string }>;
  createPlan(fields?: object): Promise<{ readonly rateLimitId: string }>;
  readonly clock: ManualClock;
  readonly limiter: RateLimiter;
  readonly records: Records;
  readonly usages: Map<string, KeyUsage>;
  /** All lines logged so far. */
  readonly lines: readonly string[];
  /** Also holds that nothing secret was ever logged. */
  stop(): Promise<void>;
}

/** What a test may replace. */
export interface Replacements {
  readonly usage?: UsageReader;
  readonly counters?: WindowCounters;
  readonly records?: Records;
  readonly reveal?: 'always' | 'once';
  readonly defaultPlanId?: string | null;
  readonly consoleDirectory?: string;
  readonly failedCredentials?: FailedCredentials;
  /** Further settings. */
  readonly settings?: TestSettings;
  /** The first instant of the clock. Milliseconds since 1970. */
  readonly startMs?: number;
}

/** Starts the management interface on a new database. */
export async function startManagement(replacements: Replacements = {}): Promise<TestManagement> {
  const { defaultPlanId = 'default', reveal = 'always', counters, failedCredentials } = replacements;
  const store = await createPostgresRecords(defaultPlanId);
  const clock = new ManualClock(replacements.startMs ?? START_MS);
  const usages = new Map<string, KeyUsage>();
  const secrets = [ROOT_TOKEN, OTHER_ROOT_TOKEN];
  const lines: string[] = [];
  const gateway = new InProcessGateway({
    settings: {
      ...{ rootTokens: [ROOT_TOKEN, OTHER_ROOT_TOKEN], secretReveal: reveal, defaultPlanId },
      // For hand-over links.
      ...{ publicUrl: 'https://api.example.com', selfServicePath: SELF_SERVICE_PATH },
      ...replacements.settings,
    },
    clock,
    ...(failedCredentials !== undefined && { failedCredentials }),
    ...(counters !== undefined && { counters }),
    log: pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) }),
  });
  const app = await gateway.management({
    records: replacements.records ?? store.records,
    usage: {
      reader: replacements.usage ?? usageThat(async (keyId) => usages.get(keyId) ?? UNUSED),
      pending: { read: async () => [], oldestAtMs: async () => undefined, knownOldestAtMs: () => undefined },
    },
    system: { read: async () => SYSTEM },
    consoleDirectory: replacements.consoleDirectory,
  });

  const { bare, sendAs, close } = await senderTo(app);
  const send = (method: Method, path: string, body?: object) => sendAs(ROOT_TOKEN, method, path, body);
  let server: PublicServer | undefined;
  return {
    app,
    bare,
    send,
    sendAs,
    startJobs: () => gateway.startJobs(),
    async listen() {
      const { createPublicServer } = await import('../../src/server/public-server.ts');
      server = createPublicServer({ management: app, requestIds: testRequestIds() });
      return (await server.listen(0, '127.0.0.1')).port;
    },
    ...creationsWith(send, (secret) => secrets.push(secret)),
    clock,
    limiter: gateway.counting.limiter,
    records: store.records,
    usages,
    lines,
    async stop() {
      close();
      await server?.close(0);
      await gateway.stop();
      await store.remove();
      const logged = lines.join('');
      for (const secret of secrets) expect(logged).not.toContain(secret);
      expect(logged).not.toMatch(/tg_[0-9A-Za-z]{36}|authorization|bearer/i);
    },
  };
}

interface Sender extends Pick<TestManagement, 'bare' | 'sendAs'> {
  close(): void;
}

/** Sends requests to an app on one port for all of them: supertest would open and close one for each. */
async function senderTo(app: TestManagement['app']): Promise<Sender> {
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const bare: Sender['bare'] = (method, path) =>
    supertest(server)
      [method](path)
      .expect((response) => requireDocumented(method, path, response));
  return {
    bare,
    sendAs(secret, method, path, body) {
      const request = bare(method, path).set('Authorization', `Bearer ${secret}`);
      return body === undefined ? request : request.send(body);
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Creates what tests need, with requests of `send`. `onSecret` gets each secret that is made. */
function creationsWith(
  send: TestManagement['send'],
  onSecret: (secret: string) => void,
): Pick<TestManagement, 'createToken' | 'createKey' | 'createPlan'> {
  let plansMade = 0;
  return {
    async createToken(fields = {}) {
      const token = { name: 'a token', scopes: ['keys:read'], ...fields };
      const { body } = await send('post', '/tollgate/admin-token/create', token).expect(201);
      onSecret(body.secret);
      return body;
    },
    async createKey(name = 'a key') {
      const { body } = await send('post', '/consumer-api-key/create', { name }).expect(201);
      onSecret(body.secret);
      return body;
    },
    async createPlan(fields = {}) {
      plansMade += 1;
      const plan = { rateLimitId: `plan-${plansMade}`, description: 'of a test', limit: 10, period: 'hour' };
      return (await send('post', '/rate-limit/create', { ...plan, ...fields }).expect(201)).body;
    },
  };
}
