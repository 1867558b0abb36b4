import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { original } from '../authorize/support/ask.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { ROOT_TOKEN, type RunningGateway } from '../support/gateway.ts';
import { queryDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';

let fleet: Fleet;
let replicas: readonly [RunningGateway, RunningGateway];
beforeAll(async () => {
  fleet = await startInProcessFleet(2, { AUTHORIZE_PORT: '0' }, (req, res) => {
    const cost = req.headers['x-cost'];
    if (cost !== undefined) res.setHeader('Tollgate-Cost', cost);
    res.end('ok');
  });
  const [first, second] = fleet.replicas;
  if (first === undefined || second === undefined) throw new Error('there are two replicas');
  replicas = [first, second];
  // From now on events are written.
  const stream = await fetch(`${first.url}/tollgate/events`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  await stream.body?.cancel();
});
afterAll(() => fleet?.stop());

interface TestKey {
  readonly id: string;
  readonly secret: string;
  readonly planId: string;
}

let plans = 0;
async function putPlan(planId: string, plan: object): Promise<void> {
  const { status } = await fleet.admin.call('PUT', `/rate-limit/${planId}`, { description: '', ...plan });
  expect([200, 201]).toContain(status);
}

async function keyUnder(plan: object): Promise<TestKey> {
  plans += 1;
  const planId = `plan-${plans}`;
  await putPlan(planId, { period: 'hour', ...plan });
  return { ...(await fleet.admin.makeKey(planId, planId)), planId };
}

/** Sends requests, of which every other one goes to the second replica; resolves with their statuses, sorted. */
function proxied(
  times: number,
  { secret }: TestKey,
  headers: Record<string, string> = {},
): Promise<number[]> {
  return all(times, async (replica) => {
    const response = await fetch(`${replica.url}/v1/items`, {
      headers: { authorization: `Bearer ${secret}`, ...headers },
    });
    await response.text();
    return response.status;
  });
}

async function all(times: number, send: (replica: RunningGateway) => Promise<number>): Promise<number[]> {
  const statuses = await Promise.all(
    Array.from({ length: times }, (_, index) => send(replicas[index % 2 === 0 ? 0 : 1])),
  );
  return statuses.toSorted();
}

function authorized(times: number, { secret }: TestKey): Promise<number[]> {
  return all(times, async ({ authorizeUrl }) => {
    const response = await fetch(`${authorizeUrl}/authorize/original`, { headers: original(secret) });
    await response.text();
    return response.status;
  });
}

function verified(times: number, { secret }: TestKey, fields: object = {}): Promise<number[]> {
  return all(times, async ({ authorizeUrl }) => {
    const response = await fetch(`${authorizeUrl}/verify`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ROOT_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ secret, ...fields }),
    });
    return ((await response.json()) as { readonly status: number }).status;
  });
}

async function used({ id }: TestKey): Promise<number> {
  return (await fleet.admin.call('GET', `/consumer-api-key/${id}/limits`)).body.limits[0].used;
}

const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

/** What was written of each key, as `<threshold>@<used>/<limit>`, sorted: two replicas write in any order. */
async function writtenEvents(): Promise<(key: TestKey) => readonly string[]> {
  const rows = await queryDatabase<{ subject: string; data: string }>(
    fleet.databaseUrl,
    `SELECT subject, data FROM events WHERE type = 'tollgate.limit.threshold'`,
  );
  return ({ id }) =>
    rows
      .filter(({ subject }) => subject === id)
      .map(({ data }) => {
        const { limitId, threshold, limit, used: count, customerId } = JSON.parse(data);
        return [`${threshold}@${count}/${limit}`, limitId, customerId]
          .filter((part) => part !== 'main')
          .join(' ')
          .trim();
      })
      .toSorted();
}

describe('a window that passes a threshold', () => {
  it('of a customer whose id is a secret makes an event without the secret', async () => {
    const tenants = { limitId: 'tenant', limit: 5, period: 'hour', per: 'customer', mode: 'shadow' };
    const plan = { limit: 1000, additionalLimits: [tenants] };
    const asItself = ({ secret }: TestKey) => ({ 'x-customer-id': secret });
    const counted = await keyUnder(plan);
    await proxied(5, counted, asItself(counted));
    const costs = [{ path: '/**', cost: 'response', reserve: 4 }];
    const reserved = await keyUnder({ ...plan, costs });
    await proxied(1, reserved, asItself(reserved));
    const settled = await keyUnder({ ...plan, costs });
    await proxied(1, settled, { ...asItself(settled), 'x-cost': '5' });

    const eventsOf = async (key: TestKey) => (await writtenEvents())(key);
    await until(async () => (await eventsOf(counted)).length === 2);
    expect(await eventsOf(counted)).toEqual(['100@5/5 tenant ***', '80@4/5 tenant ***']);
    await until(async () => (await eventsOf(reserved)).length === 1);
    expect(await eventsOf(reserved)).toEqual(['80@4/5 tenant ***']);
    await until(async () => (await eventsOf(settled)).length === 2);
    expect(await eventsOf(settled)).toEqual(['100@5/5 tenant ***', '80@4/5 tenant ***']);
  });

  it('makes one event of it over all replicas, whatever is counted and however', async () => {
    const concurrent = await keyUnder({ limit: 10 });
    expect(await proxied(20, concurrent)).toEqual([...times(10, 200), ...times(10, 429)]);

    const asked = await keyUnder({ limit: 10 });
    expect(await verified(12, asked, { count: false })).toEqual(times(12, 200));
    await verified(7, asked);
    // Says what would be decided, of a request that would pass two thresholds.
    await verified(2, asked, { count: false, cost: 3 });
    await authorized(2, asked);
    expect(await used(asked)).toBe(9);

    const costly = await keyUnder({ limit: 10, costs: [{ path: '/**', cost: 3 }] });
    expect(await proxied(4, costly)).toEqual([200, 200, 200, 429]);

    const short = await keyUnder({ limit: 1, period: '59 seconds' });
    await proxied(2, short);

    const tenants = { limitId: 'tenant', limit: 5, period: 'hour', per: 'customer', mode: 'shadow' };
    const shadow = await keyUnder({ limit: 1000, additionalLimits: [tenants] });
    expect(await proxied(8, shadow, { 'x-customer-id': 'c1' })).toEqual(times(8, 200));
    await proxied(3, shadow);

    const changed = await keyUnder({ limit: 5 });
    await proxied(5, changed);
    await fleet.admin.call('POST', `/consumer-api-key/${changed.id}/limits/grant`, { requests: 3 });
    await proxied(3, changed);
    await fleet.admin.call('POST', `/consumer-api-key/${changed.id}/limits/reset`, {});
    await proxied(4, changed);

    const lowered = await keyUnder({ limit: 10 });
    await proxied(7, lowered);
    await putPlan(lowered.planId, { limit: 5, period: 'hour' });
    expect(await proxied(1, lowered)).toEqual([429]);
    await putPlan(lowered.planId, { limit: 8, period: 'hour' });
    expect(await proxied(1, lowered)).toEqual([200]);

    const costs = [{ path: '/**', cost: 'response', reserve: 5 }];
    const reserved = await keyUnder({ limit: 20, costs });
    for (let request = 1; request <= 16; request += 1) {
      await proxied(1, reserved, { 'x-cost': '1' });
      await until(async () => (await used(reserved)) === request);
    }
    const settled = await keyUnder({ limit: 20, costs });
    await proxied(1, settled, { 'x-cost': '17' });
    await until(async () => (await used(settled)) === 17);
    await proxied(1, settled, { 'x-cost': '90' });

    // What waits is written while they stop.
    await Promise.all(replicas.map((replica) => replica.stop()));
    const eventsOf = await writtenEvents();
    expect(eventsOf(concurrent)).toEqual(['100@10/10', '80@8/10']);
    expect(eventsOf(asked)).toEqual(['80@8/10']);
    expect(eventsOf(costly)).toEqual(['80@9/10']);
    expect(eventsOf(short)).toEqual([]);
    expect(eventsOf(shadow)).toEqual(['100@5/5 tenant c1', '80@4/5 tenant c1']);
    expect(eventsOf(changed)).toEqual(['100@5/5', '100@5/5', '80@4/5', '80@4/5', '80@4/5']);
    expect(eventsOf(lowered)).toEqual(['100@8/8']);
    expect(eventsOf(reserved)).toEqual(['100@20/20', '80@16/20']);
    expect(eventsOf(settled)).toEqual(['80@17/20']);
  });
});
