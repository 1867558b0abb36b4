import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ROOT_TOKEN, startManagement, type TestManagement } from './start-management.ts';

const CREATE = '/consumer-api-key/create';
const FIND = '/api-keys/find';
const IMPORT = '/api-keys/import';

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(async () => {
  const logged = management.lines.join('');
  for (const secret of made) expect(logged).not.toContain(secret);
  await management.stop();
});

/** Secrets that must not be in any log. */
const made: string[] = [];

function newSecret(): string {
  const secret = randomBytes(24).toString('base64url');
  made.push(secret);
  return secret;
}

function hashOf(secret: string, encoding: 'hex' | 'base64' | 'base64url' = 'hex') {
  return { algorithm: 'sha256', value: createHash('sha256').update(secret).digest(encoding) };
}

function post(path: string, body: object) {
  return management.send('post', path, body);
}

async function detailOf(id: string) {
  return (await management.send('get', `/consumer-api-key/${id}`).expect(200)).body;
}

async function idOf(secret: string): Promise<string | undefined> {
  return (await post(FIND, { secret })).body.consumerApiKeyId;
}

describe('POST /consumer-api-key/create with a secret', () => {
  it('makes a key that has it, and shows it like one of its own', async () => {
    const secret = newSecret();
    const { body } = await post(CREATE, { name: 'moved here', secret }).expect(201);
    expect(body).toMatchObject({ name: 'moved here', secret });
    expect((await detailOf(body.id)).secret).toBe(secret);
    expect(await idOf(secret)).toBe(body.id);
  });

  it.each([
    ['23 characters', 'x'.repeat(23)],
    ['513 characters', 'x'.repeat(513)],
    ['a blank', `${'x'.repeat(30)} y`],
    ['an equals sign inside', `${'x'.repeat(30)}=y`],
    ['a line break at its end', `${'x'.repeat(30)}\n`],
    ['the beginning of an admin token', `tga_${'x'.repeat(30)}`],
    ['no text', 7],
    ['null', null],
  ])('rejects one of %s without repeating it', async (_what, secret) => {
    const { body } = await post(CREATE, { name: 'n', secret }).expect(400);
    expect(body.errors).toEqual([
      { field: 'secret', message: expect.stringMatching(/^must be a secret of 24 to 512 letters/) },
    ]);
    expect(JSON.stringify(body)).not.toContain('xxx');
  });

  it('takes the shortest and the longest', async () => {
    for (const length of [24, 512]) {
      const secret = randomBytes(400).toString('base64url').slice(0, length);
      await post(CREATE, { name: 'n', secret }).expect(201);
    }
  });

  it('is 409 for a secret that a key has, made here or given, also a previous one', async () => {
    const given = newSecret();
    const { id } = (await post(CREATE, { name: 'first', secret: given }).expect(201)).body;
    const { secret: generated } = await management.createKey();
    for (const secret of [given, generated]) {
      const { body } = await post(CREATE, { name: 'second', secret }).expect(409);
      expect(body.code).toBe('secret_taken');
      expect(JSON.stringify(body)).not.toContain(secret);
    }
    await post(`/consumer-api-key/${id}/rotate`, { graceSeconds: 60 }).expect(200);
    await post(CREATE, { name: 'second', secret: given }).expect(409);
  });

  it('is 409 for the root token', async () => {
    await post(CREATE, { name: 'root', secret: ROOT_TOKEN }).expect(409);
    const { body } = await post(IMPORT, { keys: [{ name: 'root', secretHash: hashOf(ROOT_TOKEN) }] });
    expect(body).toMatchObject({ code: 'secret_taken', results: [{ index: 0, code: 'secret_taken' }] });
  });

  it('makes one key of many at the same time', async () => {
    const secret = newSecret();
    const responses = await Promise.all(
      Array.from({ length: 6 }, (_, n) => post(CREATE, { name: `racer ${n}`, secret })),
    );
    expect(responses.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409, 409, 409]);
  });

  it('takes the secret of a key that was deleted', async () => {
    const { id, secret } = await management.createKey();
    await management.send('delete', `/consumer-api-key/${id}`).expect(200);
    const { body } = await post(CREATE, { name: 'again', secret }).expect(201);
    expect(await idOf(secret)).toBe(body.id);
  });

  it('is 404 for a plan that does not exist', async () => {
    const { body } = await post(CREATE, { name: 'n', secret: newSecret(), rateLimitId: 'none' }).expect(404);
    expect(body.code).toBe('plan_not_found');
  });
});

describe('POST /consumer-api-key/{id}/rotate with a secret', () => {
  it('gives the key that secret', async () => {
    const { id, secret: before } = await management.createKey();
    const secret = newSecret();
    const { body } = await post(`/consumer-api-key/${id}/rotate`, { graceSeconds: 60, secret }).expect(200);
    expect(body.secret).toBe(secret);
    expect((await post(FIND, { secret }).expect(200)).body.matchedSecret).toBe('current');
    expect((await post(FIND, { secret: before }).expect(200)).body.matchedSecret).toBe('previous');
  });

  it('is 409 for a secret of any key, its own included', async () => {
    const { id, secret } = await management.createKey();
    const other = await management.createKey();
    for (const taken of [secret, other.secret]) {
      const rotation = { graceSeconds: 0, secret: taken };
      const { body } = await post(`/consumer-api-key/${id}/rotate`, rotation).expect(409);
      expect(body.code).toBe('secret_taken');
    }
    expect((await detailOf(id)).secret).toBe(secret);
  });
});

describe('POST /api-keys/find', () => {
  it('gives the key without its secret', async () => {
    const { id, secret } = await management.createKey('leaked');
    const { body, headers } = await post(FIND, { secret }).expect(200);
    expect(body).toMatchObject({ consumerApiKeyId: id, name: 'leaked', matchedSecret: 'current' });
    expect(JSON.stringify(body)).not.toContain(secret);
    expect(headers.etag).toEqual(expect.any(String));
  });

  it('is 404 for what is no secret of any key, also for one that was valid once', async () => {
    const { id, secret } = await management.createKey();
    await post(`/consumer-api-key/${id}/rotate`, { graceSeconds: 0 }).expect(200);
    for (const wrong of [secret, 'x', 'not a secret\n', '🔑'.repeat(100), newSecret()]) {
      const { body } = await post(FIND, { secret: wrong }).expect(404);
      expect(body).toEqual({ error: 'No consumer API key has this secret.', code: 'key_not_found' });
    }
  });

  it('finds a key by its previous secret until the grace period ends', async () => {
    const { id, secret } = await management.createKey();
    await post(`/consumer-api-key/${id}/rotate`, { graceSeconds: 60 }).expect(200);
    const { body } = await post(FIND, { secret }).expect(200);
    expect(body).toMatchObject({ consumerApiKeyId: id, matchedSecret: 'previous' });
    management.clock.advance(61_000);
    await post(FIND, { secret }).expect(404);
  });

  it('reads no secret from a query', async () => {
    const { secret } = await management.createKey();
    await management.send('post', `${FIND}?secret=${secret}`, {}).expect(400);
  });

  it('is written into the audit log, found or not', async () => {
    const { id, secret } = await management.createKey();
    await post(FIND, { secret }).expect(200);
    await post(FIND, { secret: 'none' }).expect(404);
    const entries = await management.records.db
      .selectFrom('audit_log')
      .select(['action', 'target_id', 'outcome', 'changes'])
      .where('action', '=', 'key.find')
      .orderBy('sequence', 'desc')
      .limit(2)
      .execute();
    expect(entries).toMatchObject([
      { target_id: 'findConsumerKey', outcome: 'key_not_found' },
      { target_id: id, outcome: 'success' },
    ]);
    expect(JSON.stringify(entries)).not.toContain(secret);
  });
});

describe('POST /api-keys/import', () => {
  it('makes keys by secret and by hash, in the order of the list, with all fields', async () => {
    const [plain, hashed] = [newSecret(), newSecret()];
    const fields = { enabled: false, externalId: 'customer-7', tags: ['moved'], metadata: { from: 'old' } };
    const { body } = await post(IMPORT, {
      keys: [
        { name: 'plain', secret: plain, ...fields },
        { name: 'hashed', secretHash: hashOf(hashed) },
      ],
    }).expect(200);
    const ids = [await idOf(plain), await idOf(hashed)];
    expect(body).toEqual({ results: ids.map((consumerApiKeyId, index) => ({ index, consumerApiKeyId })) });
    expect(ids).toEqual(ids.toSorted());
    expect(await detailOf(String(ids[0]))).toMatchObject({ name: 'plain', secret: plain, ...fields });
    expect((await detailOf(String(ids[1]))).secret).toMatch(/^tg_\*+$/);
  });

  it('writes an audit entry for each key that it makes, without the secret', async () => {
    const [plain, hashed, taken] = [newSecret(), newSecret(), newSecret()];
    const { id } = (await post(CREATE, { name: 'created', secret: taken }).expect(201)).body;
    const keys = [
      { name: 'plain', secret: plain },
      { name: 'taken', secret: taken },
      { name: 'hashed', secretHash: hashOf(hashed) },
    ];
    await post(IMPORT, { keys, onConflict: 'skip' }).expect(200);
    const entries = await management.records.db
      .selectFrom('audit_log')
      .select(['action', 'target_id', 'target_name', 'outcome', 'changes'])
      .where('action', 'in', ['key.create', 'key.import'])
      .orderBy('sequence', 'desc')
      .limit(3)
      .execute();
    expect(entries.toReversed()).toMatchObject([
      { action: 'key.create', target_id: id, target_name: 'created', outcome: 'success' },
      { action: 'key.import', target_id: await idOf(plain), target_name: 'plain', outcome: 'success' },
      { action: 'key.import', target_id: await idOf(hashed), target_name: 'hashed', outcome: 'success' },
    ]);
    for (const { changes, target_name } of entries) expect(JSON.stringify(changes)).toContain(target_name);
    for (const secret of [plain, hashed, taken]) expect(JSON.stringify(entries)).not.toContain(secret);
  });

  it('stores every field exactly as it was sent', async () => {
    const keys = [
      {
        name: `quotes " ' \\ { } , and Ünïcode 🔑`,
        externalId: 'a "customer" \\x00',
        tags: ['eu', 'null'],
        metadata: { list: [1, 'a,b', null], empty: {}, text: '{"a":1}', number: 1.5, none: null },
        overrides: { main: { limit: 5 } },
        allowedIps: ['192.0.2.0/24', '2001:db8::1'],
        allowedOrigins: ['https://shop.example'],
        selfService: ['rotate'],
        expiresAt: '2099-12-31T23:59:59Z',
      },
      { name: 'without any' },
    ].map((key) => ({ ...key, secret: newSecret() }));
    const { body } = await post(IMPORT, { keys }).expect(200);
    for (const [index, { secret, ...fields }] of keys.entries()) {
      const { body: like } = await post(CREATE, fields).expect(201);
      const [imported, created] = await Promise.all([
        detailOf(body.results[index].consumerApiKeyId),
        detailOf(like.id),
      ]);
      expect(imported).toMatchObject({ ...fields, secret, overrides: created.overrides });
      for (const field of [...Object.keys(fields), 'metadata', 'overrides'])
        expect([field, imported[field]]).toEqual([field, created[field]]);
    }
  });

  it.each(['hex', 'base64', 'base64url'] as const)('takes a digest in %s', async (encoding) => {
    const secret = newSecret();
    const { body } = await post(IMPORT, {
      keys: [{ name: 'n', secretHash: hashOf(secret, encoding) }],
    }).expect(200);
    expect(await idOf(secret)).toBe(body.results[0].consumerApiKeyId);
  });

  it('imports none when one is taken, and names it', async () => {
    const [free, taken] = [newSecret(), newSecret()];
    await post(CREATE, { name: 'has it', secret: taken }).expect(201);
    for (const onConflict of [undefined, 'fail']) {
      const { body } = await post(IMPORT, {
        keys: [
          { name: 'a', secret: free },
          { name: 'b', secretHash: hashOf(taken) },
        ],
        ...(onConflict && { onConflict }),
      }).expect(409);
      expect(body).toMatchObject({ code: 'secret_taken', results: [{ index: 1, code: 'secret_taken' }] });
      expect(await idOf(free)).toBeUndefined();
    }
  });

  it('leaves out those that are taken where the request says so', async () => {
    const [free, taken] = [newSecret(), newSecret()];
    const keys = [
      { name: 'a', secret: taken },
      { name: 'b', secret: free },
      { name: 'c', secretHash: hashOf(free) },
    ];
    await post(CREATE, { name: 'has it', secret: taken }).expect(201);
    const { body } = await post(IMPORT, { keys, onConflict: 'skip' }).expect(200);
    expect(body.results).toEqual([
      { index: 0, code: 'secret_taken' },
      { index: 1, consumerApiKeyId: await idOf(free) },
      { index: 2, code: 'secret_taken' },
    ]);
    expect((await post(IMPORT, { keys, onConflict: 'skip' }).expect(200)).body.results).toEqual(
      [0, 1, 2].map((index) => ({ index, code: 'secret_taken' })),
    );
  });

  it('knows the hash of a secret that the gateway has made, and of a previous one', async () => {
    const { id, secret } = await management.createKey();
    const keys = [{ name: 'n', secretHash: hashOf(secret) }];
    await post(IMPORT, { keys }).expect(409);
    await post(`/consumer-api-key/${id}/rotate`, { graceSeconds: 60 }).expect(200);
    await post(IMPORT, { keys }).expect(409);
    const hashed = newSecret();
    await post(IMPORT, { keys: [{ name: 'n', secretHash: hashOf(hashed) }] }).expect(200);
    await post(CREATE, { name: 'n', secret: hashed }).expect(409);
  });

  it('names each key whose plan does not exist, and imports none', async () => {
    const free = newSecret();
    const { body } = await post(IMPORT, {
      keys: [
        { name: 'a', secret: free },
        { name: 'b', secret: newSecret(), rateLimitId: 'none' },
        { name: 'c', secret: newSecret(), rateLimitId: 'no plan\u0000' },
      ],
      onConflict: 'skip',
    }).expect(404);
    expect(body.code).toBe('plan_not_found');
    expect(body.results.length).toBeGreaterThan(0);
    expect(await idOf(free)).toBeUndefined();
  });

  it.each([
    ['no keys', { keys: [] }, 'keys'],
    ['501 keys', { keys: Array.from({ length: 501 }, () => ({ name: 'n' })) }, 'keys'],
    ['neither', { keys: [{ name: 'n' }] }, 'keys[0].secret'],
    ['both', { keys: [{ name: 'n', secret: 'x'.repeat(24), secretHash: hashOf('x') }] }, 'keys[0].secret'],
    ['no name', { keys: [{ secret: 'x'.repeat(24) }] }, 'keys[0].name'],
    [
      'a short digest',
      { keys: [{ name: 'n', secretHash: { ...hashOf('x'), value: 'ab' } }] },
      'keys[0].secretHash.value',
    ],
    [
      'another algorithm',
      { keys: [{ name: 'n', secretHash: { ...hashOf('x'), algorithm: 'md5' } }] },
      'keys[0].secretHash.algorithm',
    ],
    [
      'a past expiry',
      { keys: [{ name: 'n', secret: 'x'.repeat(24), expiresAt: '2020-01-01T00:00:00Z' }] },
      'keys[0].expiresAt',
    ],
    ['an unknown field', { keys: [{ name: 'n', secret: 'x'.repeat(24), expires: null }] }, 'keys[0].expires'],
  ])('rejects %s', async (_what, body, field) => {
    const response = await post(IMPORT, body).expect(400);
    expect(response.body.errors).toMatchObject([{ field }]);
  });

  it('names every key that breaks a rule which is no form', async () => {
    const past = { secret: 'x'.repeat(24), expiresAt: '2020-01-01T00:00:00Z' };
    const keys = [
      { name: 'a', ...past },
      { name: 'b', secret: newSecret() },
      { name: 'c', ...past },
      { name: 'd' },
    ];
    const { body } = await post(IMPORT, { keys }).expect(400);
    expect(body.errors.map(({ field }: { field: string }) => field)).toEqual([
      'keys[0].expiresAt',
      'keys[2].expiresAt',
      'keys[3].secret',
    ]);
  });

  it('takes 500 keys in one request', async () => {
    const keys = Array.from({ length: 500 }, (_, n) => ({
      name: `many ${n}`,
      secret: randomBytes(300).toString('base64url'),
      metadata: { note: 'x'.repeat(500) },
    }));
    const { body } = await post(IMPORT, { keys }).expect(200);
    expect(body.results).toHaveLength(500);
    expect(await idOf(keys[499]?.secret ?? '')).toBe(body.results[499].consumerApiKeyId);
  });
});
