import type { RequestListener } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'undici';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { until } from '../support/until.ts';

const REQUESTS = 2500;
const IN_FLIGHT = 48;
const LIMITED = 500;

/** Responds with the status that the query asks for. */
const respondAsAsked: RequestListener = (req, res) => {
  const status = Number(/[?&]status=(\d+)/.exec(req.url ?? '')?.[1] ?? 200);
  res.writeHead(status);
  res.end(status === 204 || status === 304 ? undefined : 'ok');
};

interface Counted {
  requests: number;
  successful: number;
  failed: number;
}

/** What the client itself saw, in all, by path and by customer. */
class ClientsOwnNumbers {
  readonly totals: Counted = { requests: 0, successful: 0, failed: 0 };
  readonly endpoints = new Map<string, Counted>();
  readonly customers = new Map<string, Counted>();

  add(endpoint: string, customerId: string, status: number): void {
    for (const counted of [this.totals, of(this.endpoints, endpoint), of(this.customers, customerId)]) {
      counted.requests += 1;
      if (status < 400) counted.successful += 1;
      else counted.failed += 1;
    }
  }
}

function of(list: Map<string, Counted>, name: string): Counted {
  const counted = list.get(name) ?? { requests: 0, successful: 0, failed: 0 };
  list.set(name, counted);
  return counted;
}

const STATUSES = [200, 200, 200, 201, 204, 304, 301, 400, 404, 500, 503];

describe('the statistics of three replicas', () => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startInProcessFleet(3, {}, respondAsAsked);
    await fleet.admin.makePlan('plenty', 1_000_000, 'day');
    await fleet.admin.makePlan('some', LIMITED, 'day');
  });
  afterAll(() => fleet?.stop());

  async function send(
    keys: readonly { readonly secret: string; readonly own: ClientsOwnNumbers }[],
  ): Promise<void> {
    const pools = fleet.replicas.map(({ url }) => new Pool(url, { connections: IN_FLIGHT / 3 }));
    let sent = 0;
    const sender = async (): Promise<void> => {
      while (sent < REQUESTS) {
        const number = sent;
        sent += 1;
        const roll = (number * 2_654_435_761) % 4_294_967_296;
        const key = keys[roll % 4 === 0 ? 1 : 0];
        const path = roll % 3 === 0 ? `/v1/rare/${roll % 97}` : `/v1/hot/${roll % 5}`;
        const customerId = roll % 7 === 0 ? undefined : `customer-${roll % 211}`;
        const response = await pools[number % 3]?.request({
          method: roll % 13 === 0 ? 'HEAD' : 'GET',
          path: `${path}?status=${STATUSES[roll % STATUSES.length]}&number=${number}`,
          headers: {
            authorization: `Bearer ${key?.secret}`,
            ...(customerId && { 'x-customer-id': customerId }),
          },
        });
        await response?.body.dump();
        key?.own.add(path, customerId ?? 'anonymous', response?.statusCode ?? 0);
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, sender));
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  it('are exactly what a client counted that sent 2500 mixed requests', async () => {
    const plenty = { ...(await fleet.admin.makeKey('plenty', 'plenty')), own: new ClientsOwnNumbers() };
    const some = { ...(await fleet.admin.makeKey('some', 'some')), own: new ClientsOwnNumbers() };
    const keys = [plenty, some];
    let isSending = true;
    const sending = send(keys).finally(() => {
      isSending = false;
    });
    let seen = 0;
    while (isSending) {
      const { totalRequests } = (await fleet.admin.detail(plenty.id)).usage;
      expect(totalRequests).toBeGreaterThanOrEqual(seen);
      seen = totalRequests;
      const { requests } = plenty.own.totals;
      await until(() => plenty.own.totals.requests >= requests + 100 || !isSending);
    }
    await sending;
    await until(async () => {
      const details = await Promise.all(keys.map(({ id }) => fleet.admin.detail(id)));
      return details.every(({ usage }, index) => usage.totalRequests === keys[index]?.own.totals.requests);
    });
    for (const { id, own } of keys) {
      const { usage } = await fleet.admin.detail(id);
      const { totalRequests, successfulRequests, failedRequests, endpoints, usageByCustomer } = usage;
      expect({ requests: totalRequests, successful: successfulRequests, failed: failedRequests }).toEqual(
        own.totals,
      );
      const listed = (list: readonly Record<string, unknown>[], name: string) =>
        new Map(
          list.map(({ requests, successful, failed, [name]: key }) => [
            key,
            { requests, successful, failed },
          ]),
        );
      expect(listed(endpoints, 'endpoint')).toEqual(own.endpoints);
      expect(listed(usageByCustomer, 'customerId')).toEqual(own.customers);
      const order = endpoints.map(({ requests }: Counted) => requests);
      expect(order).toEqual(order.toSorted((one: number, other: number) => other - one));
    }
    expect(some.own.totals.requests).toBeGreaterThan(LIMITED);
  });
});
