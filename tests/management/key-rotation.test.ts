import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { until } from '../support/until.ts';
import { waitingForLocks } from '../support/waiting-for-locks.ts';
import { startManagement, type TestManagement } from './start-management.ts';

const UNKNOWN = '/consumer-api-key/key_01ARZ3NDEKTSV4RRFFQ69G5FAV';
const GRACE_RULE = 'must be an integer from 0 to 2592000: for how long the previous secret stays valid';
const IN_A_DAY = '2026-02-04T04:05:07Z';

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

async function detailOf(id: string) {
  return (await management.send('get', `/consumer-api-key/${id}`).expect(200)).body;
}

/** Does something that much later than the other tests. */
async function later(ms: number, act: () => Promise<void>): Promise<void> {
  management.clock.advance(ms);
  try {
    await act();
  } finally {
    management.clock.advance(-ms);
  }
}

function rotate(id: string, body: object = { graceSeconds: 86_400 }) {
  return management.send('post', `/consumer-api-key/${id}/rotate`, body);
}

describe('POST /consumer-api-key/{id}/rotate', () => {
  it('gives a new secret, and says to the second until when the previous is valid', async () => {
    const { id, secret } = await management.createKey('rotated');
    const { body, headers } = await rotate(id).expect(200);
    expect(body).toEqual({
      consumerApiKeyId: id,
      secret: expect.stringMatching(/^tg_[0-9A-Za-z]{36}$/),
      previousValidUntil: IN_A_DAY,
      message: expect.any(String),
    });
    expect(body.secret).not.toBe(secret);
    expect(headers['cache-control']).toBe('no-store');
    const rotation = {
      startedAt: '2026-02-03T04:05:06Z',
      previousValidUntil: IN_A_DAY,
      previousLastUsedAt: null,
    };
    expect(await detailOf(id)).toMatchObject({ name: 'rotated', secret: body.secret, rotation });
    const list = await management.send('get', '/consumer-api-key?limit=1').expect(200);
    expect(list.body.apiKeys[0]).toMatchObject({ consumerApiKeyId: id, rotation });
  });

  it('without grace leaves no rotation behind', async () => {
    const { id } = await management.createKey();
    const { body } = await rotate(id, { graceSeconds: 0 }).expect(200);
    expect(body.previousValidUntil).toBe('2026-02-03T04:05:06Z');
    expect(await detailOf(id)).toMatchObject({ secret: body.secret, rotation: null });
    await rotate(id, { graceSeconds: 0 }).expect(200);
  });

  it('sets the expiry of the key where one is sent, and leaves it otherwise', async () => {
    const { id } = await management.createKey();
    await rotate(id, { graceSeconds: 0, expiresAt: IN_A_DAY }).expect(200);
    expect((await detailOf(id)).expiresAt).toBe(IN_A_DAY);
    await rotate(id, { graceSeconds: 0 }).expect(200);
    expect((await detailOf(id)).expiresAt).toBe(IN_A_DAY);
    await rotate(id, { graceSeconds: 0, expiresAt: null }).expect(200);
    expect((await detailOf(id)).expiresAt).toBeNull();
  });

  it('is 409 while the key has two secrets, and possible again afterwards', async () => {
    const { id } = await management.createKey();
    await rotate(id, { graceSeconds: 60 }).expect(200);
    const { body } = await rotate(id, { graceSeconds: 0 }).expect(409);
    expect(body.code).toBe('rotation_in_progress');
    await later(61_000, async () => {
      expect((await detailOf(id)).rotation).toBeNull();
      await rotate(id, { graceSeconds: 60 }).expect(200);
    });
  });

  it('is seen by a change of the key that has waited for it', async () => {
    const { id } = await management.createKey();
    const { db } = management.records;
    const { rotating, editing } = await db.transaction().execute(async (transaction) => {
      // The rotation has locked the key, and waits for the end of the audit log.
      await sql`SELECT FROM audit_log_ends FOR UPDATE`.execute(transaction);
      const rotating = rotate(id).then();
      await until(async () => (await waitingForLocks(db)) === 1);
      const editing = management.send('patch', `/consumer-api-key/${id}`, { name: 'edited' }).then();
      await until(async () => (await waitingForLocks(db)) === 2);
      return { rotating, editing };
    });
    expect((await rotating).status).toBe(200);
    const { rotation } = await detailOf(id);
    expect(rotation).toMatchObject({ previousValidUntil: IN_A_DAY });
    expect((await editing).body).toMatchObject({ name: 'edited', rotation });
  });

  it.each([
    ['missing', {}, 'is required and '],
    ['negative', { graceSeconds: -1 }, ''],
    ['above 30 days', { graceSeconds: 2_592_001 }, ''],
    ['no whole number', { graceSeconds: 1.5 }, ''],
    ['a text', { graceSeconds: '60' }, ''],
  ])('rejects a grace that is %s', async (_what, body, before) => {
    const { id } = await management.createKey();
    const response = await rotate(id, body).expect(400);
    expect(response.body.errors).toEqual([{ field: 'graceSeconds', message: `${before}${GRACE_RULE}` }]);
    expect((await detailOf(id)).rotation).toBeNull();
  });

  it('takes the longest grace', async () => {
    const { id } = await management.createKey();
    const { body } = await rotate(id, { graceSeconds: 2_592_000 }).expect(200);
    expect(body.previousValidUntil).toBe('2026-03-05T04:05:07Z');
  });

  it('is 404 for a key that does not exist, and 401 without the root token', async () => {
    for (const path of [UNKNOWN, '/consumer-api-key/none'])
      expect(
        (await management.send('post', `${path}/rotate`, { graceSeconds: 0 }).expect(404)).body.code,
      ).toBe('key_not_found');
    await management.bare('post', `${UNKNOWN}/rotate`).send({ graceSeconds: 0 }).expect(401);
  });
});

describe('POST /consumer-api-key/{id}/end-rotation', () => {
  function end(id: string, body: object) {
    return management.send('post', `/consumer-api-key/${id}/end-rotation`, body);
  }

  it('keeps the new secret, and responds with the key', async () => {
    const { id } = await management.createKey('kept new');
    const { body: rotated } = await rotate(id).expect(200);
    const { body } = await end(id, { keep: 'new' }).expect(200);
    expect(body).toMatchObject({ consumerApiKeyId: id, name: 'kept new', rotation: null });
    expect(body).not.toHaveProperty('secret');
    expect(await detailOf(id)).toMatchObject({ secret: rotated.secret, rotation: null });
  });

  it('keeps the previous secret, which undoes the rotation', async () => {
    const { id, secret } = await management.createKey();
    await rotate(id).expect(200);
    await end(id, { keep: 'previous' }).expect(200);
    expect(await detailOf(id)).toMatchObject({ secret, rotation: null });
    await rotate(id).expect(200);
  });

  it('is 409 for a key that has one secret, also when the rotation has ended by itself', async () => {
    const { id } = await management.createKey();
    expect((await end(id, { keep: 'new' }).expect(409)).body.code).toBe('no_rotation');
    await rotate(id, { graceSeconds: 1 }).expect(200);
    await later(2000, async () => void (await end(id, { keep: 'previous' }).expect(409)));
  });

  it.each([[{}], [{ keep: 'both' }], [{ keep: null }]])('rejects %j', async (body) => {
    const { id } = await management.createKey();
    expect((await end(id, body).expect(400)).body.errors).toMatchObject([{ field: 'keep' }]);
  });

  it('is 404 for a key that does not exist', async () => {
    await management.send('post', `${UNKNOWN}/end-rotation`, { keep: 'new' }).expect(404);
  });
});
