import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { diagnose } from '../../src/app/diagnosis/diagnose.ts';
import { type Clock, systemClock } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { REPLICAS_KEY_NAME, replicaKeyName } from '../../src/storage/redis/redis-key-names.ts';
import { Admin } from '../support/admin.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { ENCRYPTION_KEY, ROOT_TOKEN } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';
import { onRedis } from '../support/on-redis.ts';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { startSentinel } from '../support/redis-sentinel.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { createMigratedDatabase, createTestDatabase, queryDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { runInProcess } from './support/run-in-process.ts';
import { type EndedCommand, runTollgate } from './support/run-tollgate.ts';

const TLS = resolve('tests/support/tls');

/** A warning that says more about the machine of the tests than about what they set up. */
const SLOW_STORE = /(?:responds in [\d.]+ ms|[\d.]+ ms to respond)\.$/;

const MADE_UNDER_ANOTHER =
  /^The stored keys, or the newest entry of the audit log, were made under another ENCRYPTION_KEY\.$/;

interface Finding {
  readonly check: string;
  readonly status: string;
  readonly finding: string;
  readonly remedy: string | null;
}

let fleet: Fleet;

beforeAll(async () => {
  fleet = await startInProcessFleet(1, { AUTO_MIGRATE: 'true' });
  await fleet.admin.makeKey('sealed');
});
afterAll(() => fleet?.stop());

/** Nearly as long as it waits for a store or the backend: one that it calls unavailable then may only have been late. */
const SLOW_LOOK_MS = 4000;

/** What it finds with the environment of the gateway and other settings on top; it looks again, once, if that took long. */
async function doctor(settings: Readonly<Record<string, string>> = {}) {
  const startedAt = performance.now();
  const found = await look(settings);
  return performance.now() - startedAt < SLOW_LOOK_MS ? found : look(settings);
}

async function look(settings: Readonly<Record<string, string>>) {
  const environment = { ...fleet.environment, ...settings };
  return resultOf(await runInProcess(['doctor', '-o', 'json'], environment));
}

function resultOf({ code, stdout, stderr }: EndedCommand) {
  const findings = JSON.parse(stdout) as readonly Finding[];
  const wrong = findings.filter(({ status, finding }) => status !== 'ok' && !SLOW_STORE.test(finding));
  return { code, stderr, findings, wrong };
}

/** By that clock it warns of both stores. */
async function expectWarnings(clock: Clock, warning: object): Promise<void> {
  const platform = { clock, random: systemRandom, log: createLogger('silent') };
  const findings = await diagnose(fleet.environment, platform);
  for (const check of ['postgres', 'redis'])
    expect(findings).toContainEqual(expect.objectContaining({ check, status: 'warning', ...warning }));
}

describe('tollgate doctor', () => {
  it('finds nothing to do where all is well, and changes nothing', async () => {
    const { port, stop } = await startRedisServer(['--appendonly', 'yes']);
    try {
      const url = `redis://127.0.0.1:${port}`;
      const { code, findings, stderr, wrong } = await doctor({ REDIS_URL: url });
      expect([code, wrong]).toEqual([0, []]);
      expect(stderr).toMatch(/^Faults: 0\. Stores that do not respond: 0\. Warnings: \d\.\n$/);
      const all = findings.map(({ check, finding }) => `${check}: ${finding}`).join('\n');
      expect(all).toMatch(/settings: The settings are valid\./);
      expect(all).toMatch(/postgres: Postgres [\d.]+.* [\d.]+ ms/);
      expect(all).toMatch(/postgres: All migrations of this version are applied\./);
      expect(all).toMatch(/postgres: ENCRYPTION_KEY opens the stored keys/);
      expect(all).toMatch(/redis: Redis [\d.]+ at 127\.0\.0\.1:\d+ evicts no keys\./);
      expect(all).toMatch(/redis: 127\.0\.0\.1:\d+ keeps an append-only file\./);
      expect(all).toMatch(/replicas: No gateway runs/);
      expect(all).toMatch(/backend: The backend 127\.0\.0\.1:\d+ can be reached\./);
      expect(await onRedis(url, (redis) => redis.dbsize())).toBe(0);
    } finally {
      await stop();
    }
  });

  it('shows no secret, in no format', async () => {
    const database = new URL(fleet.databaseUrl);
    for (const format of ['json', 'csv', 'table', 'yaml', 'ndjson']) {
      const { stdout, stderr } = await runInProcess(['doctor', '-o', format], fleet.environment);
      for (const secret of [ROOT_TOKEN, ENCRYPTION_KEY, `:${database.password}@`])
        expect(stdout + stderr).not.toContain(secret);
    }
  });

  it('says of a terminal on lines of their own what to do', async () => {
    const environment = { ...fleet.environment, BACKEND_URL: `http://127.0.0.1:${await freePort()}` };
    const { code, stdout } = await runInProcess(['doctor', '-o', 'table'], environment);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^ok {11}settings {2}The settings are valid\.$/m);
    expect(stdout).toMatch(
      /^fault {8}backend {3}There is no connection to the backend .*: connection refused.*\n {23}Do: Start it, or correct BACKEND_URL/m,
    );
  });

  it('shows the versions of the replicas, and what does not work for one', async () => {
    const ofReplicas = async () => (await doctor()).findings.filter(({ check }) => check === 'replicas');
    // Of a replica that has just started, the heartbeat may still be that of before its first check.
    await until(async () => (await ofReplicas()).length === 1, { longestPauseMs: 500 });
    expect(await ofReplicas()).toEqual([
      expect.objectContaining({
        status: 'ok',
        finding: expect.stringMatching(/^1 replica runs, of version \d/),
      }),
    ]);
    const redis = new Redis(fleet.redisUrl);
    try {
      const description = { version: '0.0.9', host: 'old-host', pid: 7, workers: 1, degraded: ['backend'] };
      // Ten seconds after this instant it counts as gone; one further ahead than ten seconds is removed by the next heartbeat.
      await redis.zadd(REPLICAS_KEY_NAME, Date.now() + 9000, 'of-before');
      await redis.set(replicaKeyName('of-before'), JSON.stringify(description), 'PX', 60_000);
      const { wrong, code } = await doctor();
      expect(code).toBe(0);
      expect(wrong.filter(({ check }) => check === 'replicas')).toEqual([
        expect.objectContaining({ status: 'warning', finding: expect.stringContaining('0.0.9 and ') }),
        expect.objectContaining({
          finding: expect.stringContaining('old-host, process 7, has had trouble with backend'),
          remedy: expect.not.stringContaining('/readyz'),
        }),
      ]);
    } finally {
      await redis.zrem(REPLICAS_KEY_NAME, 'of-before');
      await redis.del(replicaKeyName('of-before'));
      redis.disconnect();
    }
  });

  it('says that Redis evicts keys, and that it keeps nothing over a restart', async () => {
    const { url, stop } = await startRedisServer(['--maxmemory-policy', 'allkeys-lru']);
    try {
      const { code, wrong } = await doctor({ REDIS_URL: url });
      expect(code).toBe(1);
      expect(wrong).toEqual([
        expect.objectContaining({
          check: 'redis',
          status: 'fault',
          finding: expect.stringContaining('allkeys-lru'),
        }),
        expect.objectContaining({ status: 'warning', remedy: expect.stringContaining('appendonly yes') }),
      ]);
    } finally {
      await stop();
    }
  });

  it('says that Redis can not write, and before that that its memory runs out', async () => {
    const { url, stop } = await startRedisServer(['--appendonly', 'yes']);
    const redis = new Redis(url);
    const faults = async () => {
      const { code, wrong } = await doctor({ REDIS_URL: url });
      return [code, wrong.map(({ status, finding }) => `${status}: ${finding}`).join('\n')];
    };
    try {
      // So much that what a connection takes does not matter.
      await redis.set('much', 'x'.repeat(10_000_000));
      const readUsed = async () => Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
      // For a moment Redis holds it twice: for the append-only file as well.
      await until(async () => (await readUsed()) < 15_000_000);
      const used = await readUsed();
      await redis.config('SET', 'maxmemory', Math.round(used * 1.15));
      expect(await faults()).toEqual([
        0,
        expect.stringMatching(/^warning: .* uses \d+ % of its maxmemory\.$/),
      ]);
      await redis.config('SET', 'maxmemory', 1);
      expect(await faults()).toEqual([1, expect.stringMatching(/^fault: .* has no memory left/)]);
      await redis.config('SET', 'maxmemory', 0);
      // Its directory is gone, so that a snapshot fails; a full disk has the same effect.
      await redis.config('SET', 'appendonly', 'no', 'save', '3600 1');
      const [, directory = ''] = (await redis.config('GET', 'dir')) as string[];
      await rm(directory, { recursive: true });
      await redis.bgsave();
      await until(async () => /^rdb_last_bgsave_status:err/m.test(await redis.info('persistence')));
      expect(await faults()).toEqual([
        1,
        expect.stringMatching(/fault: .* Redis can not write to its disk\./),
      ]);
    } finally {
      redis.disconnect();
      await stop();
    }
  });

  it('says that Redis is a replica', async () => {
    const master = await startRedisServer();
    const replica = await startRedisServer([
      '--replicaof',
      `127.0.0.1 ${master.port}`,
      '--appendonly',
      'yes',
    ]);
    try {
      const { code, wrong } = await doctor({ REDIS_URL: replica.url });
      expect([code, wrong]).toEqual([
        1,
        [expect.objectContaining({ status: 'fault', finding: expect.stringContaining('is a replica') })],
      ]);
    } finally {
      await replica.stop();
      await master.stop();
    }
  });

  it('says that a cluster rejects the user, and not that it is down', async () => {
    const cluster = await startRedisCluster(1);
    try {
      const REDIS_URL = cluster.url.replace('//', '//unknown:wrong@');
      const { wrong } = await doctor({ REDIS_URL, REDIS_MODE: 'cluster' });
      expect(wrong).toEqual([
        expect.objectContaining({
          status: 'fault',
          finding: 'Redis can not be used: wrong user name or password.',
        }),
      ]);
    } finally {
      await cluster.stop();
    }
  });

  it('looks at each master of a cluster', async () => {
    const cluster = await startRedisCluster(3);
    try {
      const [, second] = cluster.primaries;
      await second?.direct.config('SET', 'maxmemory-policy', 'volatile-ttl');
      const settings = { REDIS_URL: cluster.url, REDIS_MODE: 'cluster' };
      const { code, findings, wrong } = await doctor(settings);
      expect(code).toBe(1);
      expect(wrong.filter(({ status }) => status === 'fault')).toEqual([
        expect.objectContaining({
          finding: expect.stringContaining(`${second?.server.port}: Redis evicts keys`),
        }),
      ]);
      expect(findings.filter(({ finding }) => finding.includes('append-only'))).toHaveLength(3);
      expect(await Promise.all(cluster.primaries.map(({ direct }) => direct.dbsize()))).toEqual([0, 0, 0]);
    } finally {
      await cluster.stop();
    }
  });

  it('looks at the master that sentinels name', async () => {
    const master = await startRedisServer(['--appendonly', 'yes']);
    const sentinel = await startSentinel('tollgate', master.port);
    try {
      const settings = { REDIS_URL: `redis://127.0.0.1:${sentinel.port}/tollgate`, REDIS_MODE: 'sentinel' };
      const { code, findings } = await doctor(settings);
      expect([code, findings.map(({ finding }) => finding).join('\n')]).toEqual([
        0,
        expect.stringContaining(`at 127.0.0.1:${master.port} evicts no keys`),
      ]);
      await master.stop();
      // It waits for the master until its deadline.
      expect((await look(settings)).code).toBe(75);
    } finally {
      await sentinel.stop();
      await master.stop();
    }
  });

  it.each([
    ['Redis', 'REDIS_URL', 'redis://:not-the-password-7@127.0.0.1'],
    ['Postgres', 'DATABASE_URL', 'postgres://nobody-here:not-the-password-7@127.0.0.1'],
  ])('says that %s does not take the credentials, without showing them', async (store, setting, url) => {
    const redis = await startRedisServer();
    try {
      await onRedis(redis.url, (direct) => direct.config('SET', 'requirepass', 'the-password-of-redis'));
      const port = setting === 'REDIS_URL' ? redis.port : new URL(fleet.databaseUrl).port;
      const { code, findings, stderr, wrong } = await doctor({ [setting]: `${url}:${port}/0` });
      expect(code).toBe(1);
      expect(wrong).toContainEqual(
        expect.objectContaining({
          status: 'fault',
          finding: expect.stringContaining(`${store} can not be used`),
          remedy: expect.stringContaining(`Correct ${setting}`),
        }),
      );
      expect(JSON.stringify(findings) + stderr).not.toContain('not-the-password-7');
    } finally {
      await redis.stop();
    }
  });

  it('says that Redis lacks the database of REDIS_URL', async () => {
    const { code, wrong } = await doctor({ REDIS_URL: new URL('/99999', fleet.redisUrl).href });
    expect(code).toBe(1);
    expect(wrong).toContainEqual(
      expect.objectContaining({
        status: 'fault',
        finding: 'Redis can not be used: the server has no database of the number in the URL.',
        remedy: expect.stringContaining('database'),
      }),
    );
  });

  it('ends with 75 where stores do not respond, and looks at everything else', async () => {
    const port = await freePort();
    const { code, findings } = await doctor({
      REDIS_URL: `redis://127.0.0.1:${port}`,
      DATABASE_URL: `postgres://a:not-the-password-7@127.0.0.1:${port}/b`,
    });
    expect(code).toBe(75);
    expect(findings.map(({ check, status }) => `${check} ${status}`)).toEqual([
      'settings ok',
      'postgres unavailable',
      'redis unavailable',
      'backend ok',
    ]);
  });

  it('says that ENCRYPTION_KEY is another one', async () => {
    const other = Buffer.alloc(32, 1).toString('base64');
    const { code, wrong } = await doctor({ ENCRYPTION_KEY: other });
    expect(code).toBe(1);
    expect(wrong).toContainEqual(
      expect.objectContaining({ status: 'fault', finding: expect.stringMatching(MADE_UNDER_ANOTHER) }),
    );
  });

  it('says that ENCRYPTION_KEY is another one also where no secret is kept', async () => {
    const database = await createMigratedDatabase();
    try {
      const settings = { ...fleet.environment, DATABASE_URL: database.url, SECRET_REVEAL: 'once' };
      const gateway = await startInProcess(settings);
      await new Admin(gateway.url).makeKey('shown once');
      await gateway.stop();
      const other = Buffer.alloc(32, 1).toString('base64');
      const { code, wrong } = await doctor({ ...settings, ENCRYPTION_KEY: other });
      expect(code).toBe(1);
      expect(wrong).toContainEqual(
        expect.objectContaining({ status: 'fault', finding: expect.stringMatching(MADE_UNDER_ANOTHER) }),
      );
      const both = await doctor({ ...settings, ENCRYPTION_KEY: `${other},${ENCRYPTION_KEY}` });
      expect(both.wrong.filter(({ check }) => check === 'postgres')).toEqual([]);
    } finally {
      await database.drop();
    }
  });

  it('names pending migrations and applies none', async () => {
    const database = await createTestDatabase();
    try {
      const waiting = await doctor({ DATABASE_URL: database.url, AUTO_MIGRATE: 'false' });
      expect(waiting.code).toBe(1);
      expect(waiting.wrong).toContainEqual(
        expect.objectContaining({
          status: 'fault',
          finding: expect.stringMatching(/^\d+ migrations are pending: 0001_/),
          remedy: expect.stringContaining('tollgate migrate'),
        }),
      );
      expect((await doctor({ DATABASE_URL: database.url })).code).toBe(0);
      const tables = "select 1 from information_schema.tables where table_schema = 'public'";
      expect(await queryDatabase(database.url, tables)).toEqual([]);
    } finally {
      await database.drop();
    }
  });

  it('says that the default plan does not exist', async () => {
    expect((await doctor({ DEFAULT_PLAN_ID: 'not-there' })).wrong).toContainEqual(
      expect.objectContaining({ status: 'fault', finding: expect.stringContaining('the plan not-there') }),
    );
  });

  it('says whether the certificate of the backend is trusted', async () => {
    const [key, cert] = await Promise.all(
      ['localhost-key.pem', 'localhost.pem'].map((name) => readFile(`${TLS}/${name}`)),
    );
    const server = createServer({ key, cert });
    const port = await listenOnLoopback(server);
    try {
      const backend = { BACKEND_URL: `https://localhost:${port}` };
      const untrusted = await doctor(backend);
      expect([untrusted.code, untrusted.findings.at(-1)?.finding]).toEqual([
        1,
        expect.stringContaining('certificate is not trusted'),
      ]);
      const environment = { ...fleet.environment, ...backend, NODE_EXTRA_CA_CERTS: `${TLS}/ca.pem` };
      const trusted = resultOf(await runTollgate(['doctor', '-o', 'json'], { environment }));
      expect([trusted.code, trusted.findings.at(-1)?.finding]).toEqual([
        0,
        expect.stringContaining('its certificate is trusted'),
      ]);
    } finally {
      server.close();
    }
  });

  it('lists what is wrong with the settings, and looks no further', async () => {
    const { code, findings } = await doctor({ PORT: 'many', ROOT_TOKEN: 'short-and-secret' });
    expect(code).toBe(1);
    expect(findings.map(({ check, status }) => `${check} ${status}`)).toEqual([
      'settings fault',
      'settings fault',
    ]);
    expect(JSON.stringify(findings)).not.toContain('short-and-secret');
  });

  it('names what is wrong with the CONFIG_FILE, with which no gateway starts', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-doctor-'));
    try {
      const CONFIG_FILE = join(directory, 'gateway.yaml');
      const missing = join(directory, 'missing.yaml');
      await writeFile(CONFIG_FILE, 'plans: [{ rateLimitId: gold, limit: 5, period: hour }]\n');
      const valid = { check: 'settings', status: 'ok', finding: expect.stringContaining('CONFIG_FILE') };
      const fine = await doctor({ CONFIG_FILE });
      expect([fine.code, fine.findings]).toEqual([
        0,
        expect.arrayContaining([expect.objectContaining(valid)]),
      ]);
      await writeFile(CONFIG_FILE, 'plans: [{ rateLimitId: gold, limit: 0, period: fortnight }]\n');
      for (const [file, faults] of [
        [CONFIG_FILE, ['plans[0].limit: must', 'plans[0].period: must']],
        [missing, ['the file can not be read (ENOENT).']],
      ] as const) {
        const { code, wrong } = await doctor({ CONFIG_FILE: file });
        expect([code, wrong.filter(({ check }) => check === 'settings')]).toEqual([
          1,
          faults.map((fault) =>
            expect.objectContaining({
              ...{ check: 'settings', status: 'fault' },
              finding: expect.stringContaining(`CONFIG_FILE ${file}: ${fault}`),
            }),
          ),
        ]);
      }
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it('says that clocks differ', async () => {
    const late = { nowMs: () => systemClock.nowMs() - 90_000, monotonicMs: systemClock.monotonicMs };
    await expectWarnings(late, { finding: expect.stringMatching(/ (89|90|91)[.\d]* s ahead of/) });
  });

  it('says that stores are far away', async () => {
    let lookedAtMs = 0;
    const far = {
      nowMs: systemClock.nowMs,
      monotonicMs: () => {
        lookedAtMs += 90;
        return lookedAtMs;
      },
    };
    await expectWarnings(far, {
      finding: expect.stringMatching(SLOW_STORE),
      remedy: expect.stringContaining('Run it near the gateway'),
    });
  });

  it('looks at an installation with embedded stores without opening or making them', async () => {
    const environment = { BACKEND_URL: fleet.environment.BACKEND_URL ?? '', DATA_DIR: '/nonexistent/data' };
    const { code, stdout } = await runInProcess(['doctor', '-o', 'csv'], environment);
    expect([code, stdout]).toEqual([0, expect.stringContaining('embedded Postgres in DATA_DIR')]);
  });
});
