import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Admin } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';

let fleet: Fleet;
let admins: readonly Admin[];
/** What the backend was sent as `x-api-key`, in order. */
const presented: (string | undefined)[] = [];

beforeAll(async () => {
  fleet = await startInProcessFleet(2, {}, (req, res) => {
    presented.push(req.headers['x-api-key']?.toString());
    res.end('ok');
  });
  admins = fleet.replicas.map(({ url }) => new Admin(url));
});
afterAll(async () => {
  for (const replica of fleet?.replicas ?? [])
    for (const secret of made) expect(replica.output()).not.toContain(secret);
  await fleet?.stop();
});

/** Secrets that must not be in any log. */
const made: string[] = [];

function newSecret(bytes = 24): string {
  const secret = randomBytes(bytes).toString('base64url');
  made.push(secret);
  return secret;
}

function hashOf(secret: string) {
  return { algorithm: 'sha256', value: createHash('sha256').update(secret).digest('hex') };
}

function everywhere(secret: string): Promise<readonly number[]> {
  return Promise.all(fleet.replicas.map(({ url }) => statusOf(url, secret)));
}

async function post(path: string, body: object, replica = 0) {
  const response = await admins[replica]?.call('POST', path, body);
  if (response === undefined) throw new Error('no such replica');
  return response;
}

describe('a key with a secret from outside', () => {
  it.each([
    ['created', (secret: string) => post('/consumer-api-key/create', { name: 'n', secret })],
    ['imported', (secret: string) => post('/api-keys/import', { keys: [{ name: 'n', secret }] })],
    [
      'imported by its hash',
      (secret: string) => post('/api-keys/import', { keys: [{ name: 'n', secretHash: hashOf(secret) }] }),
    ],
  ])('that is %s works on every replica at once, although it was wrong before', async (_how, make) => {
    for (let round = 0; round < 3; round += 1) {
      const secret = newSecret();
      expect(await everywhere(secret)).toEqual([401, 401]);
      expect((await make(secret)).status).toBeLessThan(300);
      expect(await everywhere(secret)).toEqual([200, 200]);
      expect(await everywhere(newSecret())).toEqual([401, 401]);
      expect(presented.slice(-2)).toEqual([secret, secret]);
    }
  });

  it('known by its hash works with a secret that is shorter than one that may be given', async () => {
    const secret = newSecret(6);
    await post('/api-keys/import', { keys: [{ name: 'short', secretHash: hashOf(secret) }] });
    expect(await everywhere(secret)).toEqual([200, 200]);
  });

  it('by which another one is replaced works everywhere, and the other one nowhere', async () => {
    const secret = newSecret();
    const { id } = (await post('/consumer-api-key/create', { name: 'n', secret })).body;
    const next = newSecret();
    expect(await everywhere(secret)).toEqual([200, 200]);
    expect(await everywhere(next)).toEqual([401, 401]);
    await post(`/consumer-api-key/${id}/rotate`, { graceSeconds: 0, secret: next }, 1);
    expect(await everywhere(next)).toEqual([200, 200]);
    expect(await everywhere(secret)).toEqual([401, 401]);
  });

  it('that is known by its hash is rotated like any other', async () => {
    const secret = newSecret();
    const { results } = (
      await post('/api-keys/import', { keys: [{ name: 'n', secretHash: hashOf(secret) }] })
    ).body;
    const path = `/consumer-api-key/${results[0].consumerApiKeyId}`;
    expect(await everywhere(secret)).toEqual([200, 200]);
    const { secret: next } = (await post(`${path}/rotate`, { graceSeconds: 3600 }, 1)).body;
    expect(await everywhere(secret)).toEqual([200, 200]);
    expect(await everywhere(next)).toEqual([200, 200]);
    await post(`${path}/end-rotation`, { keep: 'previous' });
    expect(await everywhere(next)).toEqual([401, 401]);
    expect(await everywhere(secret)).toEqual([200, 200]);
    expect((await fleet.admin.detail(results[0].consumerApiKeyId)).secret).toMatch(/^tg_\*+$/);
  });

  it('moves to a new key when its own is deleted, without a rejection in between', async () => {
    const secret = newSecret();
    for (let round = 0; round < 3; round += 1) {
      const { id } = (await post('/consumer-api-key/create', { name: `${round}`, secret }, round % 2)).body;
      expect(await everywhere(secret)).toEqual([200, 200]);
      await admins[1 - (round % 2)]?.deleteKey(id);
    }
    expect(await everywhere(secret)).toEqual([401, 401]);
  });

  it('is made once by two replicas at the same time', async () => {
    for (let round = 0; round < 5; round += 1) {
      const secret = newSecret();
      const responses = await Promise.all([
        post('/consumer-api-key/create', { name: 'a', secret }, 0),
        post('/api-keys/import', { keys: [{ name: 'b', secretHash: hashOf(secret) }] }, 1),
        post('/consumer-api-key/create', { name: 'c', secret }, 1),
      ]);
      expect(responses.filter(({ status }) => status < 300)).toHaveLength(1);
      expect(responses.filter(({ status }) => status === 409)).toHaveLength(2);
      expect(await everywhere(secret)).toEqual([200, 200]);
    }
  });
});
