import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Admin } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { requireProgram } from '../support/debian-package.ts';
import { documentedCommands } from '../support/documented-commands.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { ROOT_TOKEN, type RunningGateway } from '../support/gateway.ts';
import { testRedisUrl } from '../support/stores.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
/** Between two requests of a client: what is waited for takes seconds, and is no matter of how many there are. */
const PAUSE_MS = 25;

describe('the commands of docs/api.md that read usage', () => {
  let fleet: Fleet;
  let directory: string;
  beforeAll(async () => {
    await Promise.all([requireProgram('curl', 'curl'), requireProgram('jq', 'jq')]);
    directory = await mkdtemp(join(tmpdir(), 'tollgate-usage-'));
    fleet = await startInProcessFleet(1, { USAGE_FLUSH_MS: '500' });
  });
  afterAll(async () => {
    await fleet?.stop();
    await rm(directory, { recursive: true, force: true });
  });

  it('show what a client did, as JSON and as CSV', async () => {
    // In place of the month of the examples: the one in which the requests are sent.
    const month = `${new Date().toISOString().slice(0, 'YYYY-MM'.length)}-01`;
    const { id, secret } = await fleet.admin.makeKey('of the documented commands');
    const url = fleet.replicas[0]?.url ?? '';
    for (const customer of ['acme', 'acme', 'globex']) {
      expect(await statusOf(`${url}/v1/orders`, secret, { 'x-customer-id': customer })).toBe(200);
    }
    await until(async () => {
      const { body } = await fleet.admin.call('GET', '/api-keys/usage?interval=total');
      return body.rows[0]?.requests === 3;
    });
    const env = { ...process.env, GATEWAY: url, ROOT_TOKEN, KEY_ID: id };
    const outputs: string[] = [];
    for (const block of await documentedCommands('## Usage over time')) {
      const script = block.replaceAll('2026-11-01', month).replaceAll('&to=2026-12-01', '');
      outputs.push((await run('sh', ['-ec', script], { env, cwd: directory })).stdout);
    }
    expect(JSON.parse(outputs[0] ?? '').rows).toMatchObject([{ requests: 3, successful: 3, failed: 0 }]);
    const [busiest, ...customers] = (outputs[1] ?? '').split('\n');
    expect(busiest).toBe(`${id}\t3\t0`);
    expect(JSON.parse(customers.join('\n'))).toEqual({ acme: 2, globex: 1 });
    const [header, row] = (await readFile(join(directory, 'usage.csv'), 'utf8')).split('\r\n');
    expect(header).toMatch(/^start,consumerApiKeyId,consumerApiKeyName,requests,/);
    expect(row).toContain(`,${id},of the documented commands,3,3,0,`);
  });
});

describe('the series of one key', () => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startInProcessFleet(2, { USAGE_FLUSH_MS: '1000' });
  });
  afterAll(() => fleet?.stop());

  it('sums to the totals of the key while counts move to Postgres, in any grouping', async () => {
    const { id, secret } = await fleet.admin.makeKey('of a series');
    const names = ['requests', 'successful', 'failed'] as const;
    const read = async (groupBy: string) => {
      const { body } = await fleet.admin.call(
        'GET',
        `/consumer-api-key/${id}/usage?interval=day&groupBy=${groupBy}`,
      );
      return names.map((name) =>
        body.rows.reduce((sum: number, row: Record<string, number>) => sum + (row[name] ?? 0), 0),
      );
    };
    const url = fleet.replicas[0]?.url ?? '';
    let sent = 0;
    let inHistory = 0;
    while (inHistory < 40) {
      const customer = { 'x-customer-id': `customer-${sent % 3}` };
      expect(await statusOf(`${url}/v1/${sent % 4}`, secret, customer)).toBe(200);
      sent += 1;
      for (const groupBy of ['rateLimit', 'endpoint', 'customer,key']) {
        expect(await read(groupBy)).toEqual([sent, sent, 0]);
      }
      const { body } = await fleet.admin.call('GET', '/api-keys/usage?interval=total');
      inHistory = body.rows[0]?.requests ?? 0;
      expect(inHistory).toBeLessThanOrEqual(sent);
      await wait(PAUSE_MS);
    }
  });
});

describe('the series of all keys', () => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startInProcessFleet(1, { USAGE_FLUSH_MS: '50000' });
  });
  afterAll(() => fleet?.stop());

  it('says since when it is not complete while counts wait in Redis', async () => {
    const { id, secret } = await fleet.admin.makeKey('of a slow flusher');
    expect(await statusOf(`${fleet.replicas[0]?.url}/v1/orders`, secret)).toBe(200);
    const own = await fleet.admin.call('GET', `/consumer-api-key/${id}/usage`);
    expect(own.body.rows).toMatchObject([{ requests: 1 }]);
    const { body } = await fleet.admin.call('GET', '/api-keys/usage');
    expect(body.rows).toEqual([]);
    // It stands still for as long as they wait.
    await until(() => Date.now() > Date.parse(body.completeUntil) + 8000);
    const later = await fleet.admin.call('GET', '/api-keys/usage');
    expect(later.body).toMatchObject({ rows: [], completeUntil: body.completeUntil });
  });
});

describe('completeUntil', () => {
  let relay: TcpRelay;
  let redisPort: number;
  let fleet: Fleet;
  beforeAll(async () => {
    const redisUrl = testRedisUrl();
    redisPort = portOf(redisUrl);
    relay = await TcpRelay.start(redisPort);
    fleet = await startInProcessFleet(2, { REDIS_URL: relay.urlOf(redisUrl), USAGE_FLUSH_MS: '500' });
  });
  afterAll(async () => {
    await fleet?.stop();
    await relay?.stop();
  });

  it('never passes a request that is not in the rows, also after Redis was down', async () => {
    await fleet.admin.makePlan('ample', 1_000_000, 'hour');
    const { id, secret } = await fleet.admin.makeKey('of an outage', 'ample');
    const admins = fleet.replicas.map(({ url }) => new Admin(url));
    const endedAt: number[] = [];
    let isOver = false;
    const use = async ({ url }: RunningGateway) => {
      while (!isOver) {
        const { status } = await fetch(url, { headers: { authorization: `Bearer ${secret}` } });
        expect(status).toBe(200);
        endedAt.push(Date.now());
        await wait(PAUSE_MS);
      }
    };
    const clients = Promise.all(fleet.replicas.map(use));
    const series = [`/consumer-api-key/${id}/usage`, '/api-keys/usage'];
    /** The earliest of both series on both replicas. Undefined while one of them can't be read. */
    const completeUntil = async (): Promise<number | undefined> => {
      const untilMs: number[] = [];
      for (const path of series) {
        for (const admin of admins) {
          const { status, body } = await admin.call('GET', `${path}?interval=total`);
          if (status === 503) return undefined;
          const completeMs = Date.parse(body.completeUntil);
          const ended = endedAt.filter((at) => at < completeMs).length;
          expect(body.rows[0]?.requests ?? 0).toBeGreaterThanOrEqual(ended);
          untilMs.push(completeMs);
        }
      }
      return Math.min(...untilMs);
    };
    // Each look is four series.
    const untilComplete = (ms: number) =>
      until(async () => ((await completeUntil()) ?? 0) > ms, { longestPauseMs: 200 });
    await untilComplete(endedAt[0] ?? Date.now());
    relay.reject();
    const awayAt = Date.now();
    await until(() => Date.now() > awayAt + 4000);
    // What Postgres has can be read, and it says up to where that is whole.
    expect(await completeUntil()).toBeLessThanOrEqual(awayAt);
    relay.pass(redisPort);
    await untilComplete(Date.now());
    isOver = true;
    await clients;
  });
});

describe('the series of some of the keys', () => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startInProcessFleet(1, { USAGE_FLUSH_MS: '200' });
  });
  afterAll(() => fleet?.stop());

  it('counts the requests of keys with a tag, or of an owner, and of no others', async () => {
    const url = fleet.replicas[0]?.url ?? '';
    const use = async (fields: object, requests: number) => {
      const { id, secret } = await fleet.admin.makeKey('tagged');
      await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, fields);
      for (let n = 0; n < requests; n += 1)
        expect((await fetch(url, { headers: { authorization: `Bearer ${secret}` } })).status).toBe(200);
      return id;
    };
    const paid = await use({ tags: ['paid', 'eu'] }, 3);
    const owned = await use({ tags: ['free'], externalId: 'acme' }, 2);
    const requests = async (query: string) => {
      const { body } = await fleet.admin.call('GET', `/api-keys/usage?interval=total&${query}`);
      return body.rows.map((row: { requests: number }) => row.requests);
    };
    await until(async () => (await requests(''))[0] === 5);
    expect(await requests('tag=paid')).toEqual([3]);
    expect(await requests('externalId=acme')).toEqual([2]);
    expect(await requests('tag=eu&externalId=acme')).toEqual([]);
    const { body } = await fleet.admin.call('GET', '/api-keys/usage?interval=day&groupBy=key&top=1&tag=eu');
    expect(body.rows).toMatchObject([{ consumerApiKeyId: paid, requests: 3 }]);
    expect((await fleet.admin.call('GET', '/api-keys/usage?tag=UPPER')).status).toBe(400);
    expect((await fleet.admin.call('GET', `/consumer-api-key/${paid}/usage?tag=eu`)).status).toBe(400);
    // A deleted key has neither tag nor owner; its usage stays.
    await fleet.admin.deleteKey(owned);
    expect(await requests('')).toEqual([5]);
    expect(await requests(`consumerApiKeyId=${owned}`)).toEqual([2]);
    for (const query of ['tag=free', 'externalId=acme']) expect(await requests(query)).toEqual([]);
    for (const path of ['', '/usage'])
      expect((await fleet.admin.call('GET', `/consumer-api-key/${owned}${path}`)).status).toBe(404);
  });
});
