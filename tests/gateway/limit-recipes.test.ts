import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { until } from '../support/until.ts';

const page = readFileSync(new URL('../../docs/limits.md', import.meta.url), 'utf8');

let fleet: Fleet;
let url: string;

beforeAll(async () => {
  fleet = await startInProcessFleet(1, {}, (req, res) => {
    const cost = req.headers['x-cost'];
    if (cost !== undefined) res.setHeader('Tollgate-Cost', cost);
    res.end('ok');
  });
  url = fleet.replicas[0]?.url ?? '';
});
afterAll(() => fleet?.stop());

/** The body that the page has under a heading. */
function bodyUnder(heading: string): object {
  const start = page.indexOf(`\n${heading}\n`);
  const json = /```json\n([^`]+)```/.exec(page.slice(start))?.[1];
  if (start === -1 || json === undefined) throw new Error(`the page has no body under "${heading}"`);
  return JSON.parse(json);
}

/** A key under the plan of a heading. */
async function keyUnder(heading: string, planId: string) {
  const { status } = await fleet.admin.call('PUT', `/rate-limit/${planId}`, bodyUnder(heading));
  expect(status).toBe(201);
  return fleet.admin.makeKey(planId, planId);
}

async function use(
  secret: string,
  path = '/',
  options: { method?: string; headers?: Record<string, string> } = {},
) {
  const { method = 'GET', headers = {} } = options;
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${secret}`, ...headers },
  });
  await response.text();
  return response;
}

async function statuses(times: number, request: () => Promise<Response>): Promise<number[]> {
  const all = await Promise.all(Array.from({ length: times }, async () => (await request()).status));
  return all.toSorted();
}

describe('the recipes of docs/limits.md', () => {
  it('burst and quota: what the burst rejects costs no quota', async () => {
    await keyUnder('### Burst and quota', 'gold');
    let secret = '';
    let got: number[] = [];
    const isQuick = async () => {
      ({ secret } = await fleet.admin.makeKey('gold', 'gold'));
      const startedAt = performance.now();
      got = await statuses(30, () => use(secret));
      return performance.now() - startedAt < 2000;
    };
    // In less time it meets two windows at most, in which 20 are allowed.
    await until(isQuick);
    const allowed = got.filter((status) => status === 200).length;
    expect(allowed).toBeGreaterThanOrEqual(10);
    expect(allowed).toBeLessThanOrEqual(20);
    const quota = /"gold";r=(\d+)/.exec((await use(secret)).headers.get('ratelimit') ?? '')?.[1];
    expect(10_000 - Number(quota)).toBeLessThanOrEqual(allowed + 1);
    expect(10_000 - Number(quota)).toBeGreaterThanOrEqual(allowed);
  });

  it('an expensive endpoint: limited by itself, with costs, and a free one', async () => {
    const { secret } = await keyUnder('### An expensive endpoint', 'search');
    const left = async (path: string, method?: string) =>
      Number(
        /"search";r=(\d+)/.exec(
          (await use(secret, path, method ? { method } : {})).headers.get('ratelimit') ?? '',
        )?.[1],
      );
    expect(await left('/v1/items')).toBe(999);
    expect(await left('/v1/batch', 'POST')).toBe(994);
    expect(await left('/v1/health')).toBe(994);
    const searches = await statuses(25, () => use(secret, '/v1/search/a', { method: 'POST' }));
    expect(searches.filter((status) => status === 200)).toHaveLength(20);
    expect(await left('/v1/search/a')).toBe(973);
  });

  it('a fair share for each customer: one at its limit leaves the others theirs', async () => {
    const { secret } = await keyUnder('### A fair share for each customer', 'partner');
    const as = (customer: string) => () => use(secret, '/', { headers: { 'x-customer-id': customer } });
    expect((await statuses(30, as('greedy'))).filter((status) => status === 200)).toHaveLength(20);
    expect(await statuses(5, as('modest'))).toEqual([200, 200, 200, 200, 200]);
  });

  it('a lower limit in shadow first: nothing is rejected, and each case is counted', async () => {
    const { secret } = await keyUnder('### Trying a lower limit in shadow first', 'trial');
    const shadowed = async () => {
      const metrics = await (await fetch(`${fleet.replicas[0]?.opsUrl}/metrics`)).text();
      const line = /^tollgate_limits_total\{[^}]*mode="shadow",outcome="limited"[^}]*\} (\d+)$/m.exec(
        metrics,
      );
      return Number(line?.[1] ?? 0);
    };
    const before = await shadowed();
    expect(await statuses(5, () => use(secret))).toEqual([200, 200, 200, 200, 200]);
    await until(async () => (await shadowed()) - before === 2);
    const plan = bodyUnder('### Trying a lower limit in shadow first') as { additionalLimits: object[] };
    const enforced = plan.additionalLimits.map((limit) => ({ ...limit, mode: 'enforce' }));
    await fleet.admin.call('PUT', '/rate-limit/trial', { ...plan, additionalLimits: enforced });
    expect((await use(secret)).status).toBe(429);
  });

  it('extra room for one key until a date: other keys of the plan have what they had', async () => {
    await fleet.admin.makePlan('daily', 10_000, 'day');
    const { id, secret } = await fleet.admin.makeKey('raised', 'daily');
    const other = await fleet.admin.makeKey('other', 'daily');
    const overrides = bodyUnder('### Extra room for one key until a date');
    expect((await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, overrides)).status).toBe(200);
    expect((await use(secret)).headers.get('x-ratelimit-limit')).toBe('50000');
    expect((await use(other.secret)).headers.get('x-ratelimit-limit')).toBe('10000');
  });

  it('costs that only the backend knows: the response settles the reserve', async () => {
    const { id, secret } = await keyUnder('## Costs that only the backend knows', 'tokens');
    const used = async () =>
      (await fleet.admin.call('GET', `/consumer-api-key/${id}/limits`)).body.limits[0].used;
    const chat = (cost: string) =>
      use(secret, '/v1/chat/completions', { method: 'POST', headers: { 'x-cost': cost } });
    const response = await chat('240');
    expect(response.headers.get('x-ratelimit-remaining')).toBe('99000');
    expect(response.headers.get('tollgate-cost')).toBeNull();
    await until(async () => (await used()) === 240);
    await chat('4000');
    await until(async () => (await used()) === 4240);
  });
});
