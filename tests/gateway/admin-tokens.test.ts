import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startInProcessFleet(2);
});
afterAll(() => fleet?.stop());

async function createToken(
  fields: object,
): Promise<{ readonly adminTokenId: string; readonly secret: string }> {
  const token = { name: 'a token', scopes: ['read-only'], ...fields };
  const { status, body } = await fleet.admin.call('POST', '/tollgate/admin-token/create', token);
  expect(status).toBe(201);
  return body;
}

/** Of each replica. */
async function statuses(secret: string, path: string): Promise<readonly number[]> {
  const headers = { authorization: `Bearer ${secret}` };
  const responses = await Promise.all(fleet.replicas.map(({ url }) => fetch(`${url}${path}`, { headers })));
  return responses.map(({ status }) => status);
}

describe('an admin token', () => {
  it('that is changed or deleted is so on every replica with the next request', async () => {
    const { adminTokenId, secret } = await createToken({});
    const path = `/tollgate/admin-token/${adminTokenId}`;
    expect(await statuses(secret, '/consumer-api-key')).toEqual([200, 200]);
    await fleet.admin.call('PATCH', path, { scopes: ['plans:read'] });
    expect(await statuses(secret, '/consumer-api-key')).toEqual([403, 403]);
    expect(await statuses(secret, '/rate-limit')).toEqual([200, 200]);
    const rotated = await fleet.admin.call('POST', `${path}/rotate`, { graceSeconds: 0 });
    expect(await statuses(secret, '/rate-limit')).toEqual([401, 401]);
    expect(await statuses(rotated.body.secret, '/rate-limit')).toEqual([200, 200]);
    await fleet.admin.call('DELETE', path);
    expect(await statuses(rotated.body.secret, '/rate-limit')).toEqual([401, 401]);
  });

  it('opens nothing but management, which a consumer key does not open', async () => {
    const { secret } = await createToken({});
    expect(await statuses(secret, '/proxied')).toEqual([401, 401]);
    const key = await fleet.admin.makeKey('a consumer');
    expect(await statuses(key.secret, '/tollgate/whoami')).toEqual([401, 401]);
    expect(fleet.backendRequests()).toBe(0);
  });

  it('and its secret are in no log', async () => {
    const { adminTokenId, secret } = await createToken({});
    await statuses(secret, `/rate-limit?token=${secret}`);
    await statuses(secret, `/consumer-api-key/${secret}`);
    for (const { output } of fleet.replicas) expect(output()).not.toContain(secret);
    expect(fleet.replicas[0]?.output()).toContain(adminTokenId);
  });
});
