import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet(2);
});
afterAll(() => fleet?.stop());

async function post(
  replica: number,
  path: string,
  { key, body }: { readonly key: string; readonly body: object },
): Promise<Response> {
  return fetch(`${fleet.replicas[replica]?.url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${ROOT_TOKEN}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    },
    body: JSON.stringify(body),
  });
}

describe('two replicas that get the same Idempotency-Key', () => {
  it('at once make one key, over and over', async () => {
    for (let round = 0; round < 20; round += 1) {
      const request = { key: `round-${round}`, body: { name: `made in round ${round}` } };
      const send = (replica: number) => post(replica, '/consumer-api-key/create', request);
      const responses = await Promise.all([0, 1, 0, 1].map(send));
      const made = (await Promise.all(
        responses.filter(({ status }) => status === 201).map((response) => response.json()),
      )) as readonly { readonly secret: string }[];
      expect(made.length).toBeGreaterThan(0);
      expect(responses.every(({ status }) => status === 201 || status === 409)).toBe(true);
      expect(await (await send(1)).json()).toEqual(made[0]);
      expect(new Set(made.map(({ secret }) => secret)).size).toBe(1);
    }
    const { body } = await fleet.admin.call('GET', '/consumer-api-key');
    expect(body.apiKeys).toHaveLength(20);
  });

  it('hold a change that it made with the next request', async () => {
    const { id, secret } = await fleet.admin.makeKey('limited');
    await fleet.admin.makePlan('two', 2, 'hour');
    await fleet.admin.makePlan('three', 3, 'hour');
    await fleet.admin.bind(id, 'two');
    const used = [0, 1, 0].map((replica) => fleet.replicas[replica]?.url ?? '');
    const statuses: number[] = [];
    for (const url of used) statuses.push(await statusOf(url, secret));
    expect(statuses).toEqual([200, 200, 429]);
    const request = { key: 'bind', body: { consumerApiKeyId: id, rateLimitId: 'three' } };
    expect((await post(0, '/api-keys/apply-rate-limit', request)).status).toBe(200);
    expect(await statusOf(fleet.replicas[1]?.url ?? '', secret)).toBe(200);
    const replayed = await post(1, '/api-keys/apply-rate-limit', request);
    expect(replayed.headers.get('idempotency-replayed')).toBe('true');
    expect(await statusOf(fleet.replicas[0]?.url ?? '', secret)).toBe(429);
  });

  it('grant the room of one request once', async () => {
    const { id } = await fleet.admin.makeKey('granted');
    const request = { key: 'grant', body: { requests: 7 } };
    const path = `/consumer-api-key/${id}/limits/grant`;
    await Promise.all([0, 1, 0, 1].map((replica) => post(replica, path, request)));
    const shown = await (await post(1, path, request)).json();
    expect(shown).toMatchObject({ limits: [{ granted: 7 }] });
  });
});
