import { randomBytes } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { BlockList } from 'node:net';
import { expect } from '@jest/globals';
import { pino } from 'pino';
import supertest, { type Test } from 'supertest';
import { AdminTokenService } from '../../src/admins/admin-token-service.ts';
import { TokenAuthenticator } from '../../src/admins/token-authenticator.ts';
import { DesiredStateService } from '../../src/desired-state/desired-state-service.ts';
import { FailedCredentials } from '../../src/http/credentials/failed-credentials.ts';
import { RequestIds } from '../../src/http/request-id.ts';
import { withRequestId } from '../../src/http/with-request-id.ts';
import { IdempotentRequests } from '../../src/idempotency/idempotent-requests.ts';
import { KeyImports } from '../../src/keys/key-imports.ts';
import { KeyRotations } from '../../src/keys/key-rotation.ts';
import { KeyService } from '../../src/keys/key-service.ts';
import { SecretVault } from '../../src/keys/secrets/secret-vault.ts';
import { digestOfSecret, SecretSealer } from '../../src/keys/secrets/stored-secret.ts';
import { InProcessRateLimiter } from '../../src/limiter/in-process/in-process-rate-limiter.ts';
import { InProcessRecordVersions } from '../../src/limiter/in-process/in-process-record-versions.ts';
import { InProcessWindowCounters } from '../../src/limiter/in-process/in-process-window-counters.ts';
import { WindowTable } from '../../src/limiter/in-process/window-table.ts';
import type { RateLimiter } from '../../src/limiter/rate-limiter.ts';
import { VersionsAfterCommit } from '../../src/limiter/versions-after-commit.ts';
import type { WindowCounters } from '../../src/limiter/window-counters.ts';
import type { GatewayFacts } from '../../src/management/endpoint.ts';
import { createManagementApp } from '../../src/management/management-app.ts';
import type { SystemReport } from '../../src/management/system/system-report.ts';
import { PlanService } from '../../src/plans/plan-service.ts';
import { systemRandom } from '../../src/platform/random.ts';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import { PostgresSeriesStore } from '../../src/storage/postgres/usage/postgres-series-store.ts';
import { UsageSeries } from '../../src/usage/series/usage-series.ts';
import type { KeyUsage, UsageReader } from '../../src/usage/usage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { createPostgresRecords } from '../support/records.ts';

export const ROOT_TOKEN = 'the-root-token-of-the-management-tests';
export const OTHER_ROOT_TOKEN = 'a-second-root-token-that-is-valid-too';
const GATEWAY: GatewayFacts = {
  version: '1.2.3',
  keyPrefix: 'tg',
  secretReveal: 'always',
  defaultPlanId: 'default',
  customerIdHeader: 'x-customer-id',
  usageRetentionDays: 90,
  usageDailyRetentionDays: 400,
  auditRetentionDays: 365,
  publicPort: null,
};
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

type Method = 'get' | 'post' | 'patch' | 'delete' | 'put' | 'head' | 'options';

/** The management interface over real services: Postgres, and limits in the process. */
export interface TestManagement {
  readonly app: RequestListener;
  /** A request with the root token; `body` is sent as JSON. */
  send(method: Method, path: string, body?: object): Test;
  /** A request with nothing added. */
  bare(method: Method, path: string): Test;
  /** A request with the secret of an admin token. */
  sendAs(secret: string, method: Method, path: string, body?: object): Test;
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
  /** Wrong credentials that an address may send at once. */
  readonly guesses?: number;
}

/** Starts the management interface on a new database. */
export async function startManagement(replacements: Replacements = {}): Promise<TestManagement> {
  const { defaultPlanId = 'default', reveal = 'always' } = replacements;
  const store = await createPostgresRecords(defaultPlanId);
  const records = replacements.records ?? store.records;
  const clock = new ManualClock(START_MS);
  const table = new WindowTable();
  const limiter = new InProcessRateLimiter(table, clock);
  const versions = new VersionsAfterCommit(new InProcessRecordVersions(table, clock), records.unitOfWork);
  const vault = new SecretVault([randomBytes(32)], systemRandom);
  const usages = new Map<string, KeyUsage>();
  const secrets = [ROOT_TOKEN, OTHER_ROOT_TOKEN];
  const lines: string[] = [];

  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
  const trustedProxies = new BlockList();
  const sealer = new SecretSealer({ vault, reveal, reservedDigests: [digestOfSecret(ROOT_TOKEN)] });
  const management = createManagementApp({
    imports: new KeyImports({ secrets: records.secrets, sealer, clock, random: systemRandom }),
    rotations: new KeyRotations({
      secrets: records.secrets,
      versions,
      sealer,
      random: systemRandom,
      keyPrefix: 'tg',
    }),
    keys: new KeyService({
      repository: records.keys,
      keyList: records.keyList,
      versions,
      vault,
      clock,
      random: systemRandom,
      keyPrefix: 'tg',
      reveal,
    }),
    configurations: new DesiredStateService({
      store: records.desiredState,
      plans: records.plans,
      keys: records.keys,
      unitOfWork: records.unitOfWork,
      versions: new InProcessRecordVersions(table, clock),
      sealer,
      clock,
      random: systemRandom,
      keyPrefix: 'tg',
      defaultPlanId,
    }),
    plans: new PlanService({ repository: records.plans, versions, defaultPlanId }),
    counters: replacements.counters ?? new InProcessWindowCounters(table, clock),
    usage: replacements.usage ?? {
      read: async (keyId) => usages.get(keyId) ?? UNUSED,
      totals: async (keyIds) => new Map(keyIds.map((keyId) => [keyId, usages.get(keyId) ?? UNUSED])),
    },
    series: new UsageSeries({
      store: new PostgresSeriesStore(records.db),
      clock,
      retentionDays: 90,
      pending: { read: async () => [], oldestAtMs: async () => undefined },
      outages: () => [],
    }),
    tokens: new AdminTokenService({ repository: records.adminTokens, vault, clock, random: systemRandom }),
    audit: records.audit,
    system: { read: async () => SYSTEM },
    gateway: GATEWAY,
    credentials: {
      rootTokens: [ROOT_TOKEN, OTHER_ROOT_TOKEN],
      adminTokens: new TokenAuthenticator({ repository: records.adminTokens, vault, clock, log }),
      failedCredentials: new FailedCredentials({
        clock,
        trustedProxies,
        burst: replacements.guesses ?? 100_000,
      }),
    },
    trustedProxies,
    consoleDirectory: replacements.consoleDirectory,
    idempotency: new IdempotentRequests({ store: records.responses, vault, clock }),
    clock,
    log,
  });

  const app = withRequestId(management, {
    requestIds: new RequestIds(systemRandom, () => false),
    clock,
    onServed: () => {},
  });

  const bare = (method: Method, path: string) => supertest(app)[method](path);
  const sendAs = (secret: string, method: Method, path: string, body?: object) => {
    const request = bare(method, path).set('Authorization', `Bearer ${secret}`);
    return body === undefined ? request : request.send(body);
  };
  const send = (method: Method, path: string, body?: object) => sendAs(ROOT_TOKEN, method, path, body);
  let plansMade = 0;
  return {
    app,
    bare,
    send,
    sendAs,
    async createToken(fields = {}) {
      const token = { name: 'a token', scopes: ['keys:read'], ...fields };
      const { body } = await send('post', '/tollgate/admin-token/create', token).expect(201);
      secrets.push(body.secret);
      return body;
    },
    async createKey(name = 'a key') {
      const { body } = await send('post', '/consumer-api-key/create', { name }).expect(201);
      secrets.push(body.secret);
      return body;
    },
    async createPlan(fields = {}) {
      plansMade += 1;
      const plan = { rateLimitId: `plan-${plansMade}`, description: 'of a test', limit: 10, period: 'hour' };
      return (await send('post', '/rate-limit/create', { ...plan, ...fields }).expect(201)).body;
    },
    clock,
    limiter,
    records: store.records,
    usages,
    lines,
    async stop() {
      await store.remove();
      const logged = lines.join('');
      for (const secret of secrets) expect(logged).not.toContain(secret);
      expect(logged).not.toMatch(/tg_[0-9A-Za-z]{36}|authorization|bearer/i);
    },
  };
}
