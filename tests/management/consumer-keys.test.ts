import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { actDuring } from '../support/waiting-for-locks.ts';
import { DEFAULT_KEY_FIELDS, startManagement, type TestManagement } from './start-management.ts';

const CREATE = '/consumer-api-key/create';
const KEY_ID = /^key_[0-9A-HJKMNP-TV-Z]{26}$/;
const NAME_RULE =
  'must be a string of 1 to 255 characters without control characters or bidirectional controls, not counting blanks around it';
const EXPIRES_AT_RULE =
  'must be an instant in the future as YYYY-MM-DDThh:mm:ssZ (UTC), or null for a key that never expires';
const UNKNOWN_ID = 'key_01ARZ3NDEKTSV4RRFFQ69G5FAV';

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

describe('POST /consumer-api-key/create', () => {
  it('responds with exactly id, name, secret and a createdAt without zone', async () => {
    const { body, headers } = await management.send('post', CREATE, { name: 'Mobile app' }).expect(201);
    expect(body).toEqual({
      id: expect.stringMatching(KEY_ID),
      name: 'Mobile app',
      secret: expect.stringMatching(/^tg_[0-9A-Za-z]{36}$/),
      createdAt: '2026-02-03 04:05:06',
    });
    expect(headers['cache-control']).toBe('no-store');
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(headers.location).toBe(`/consumer-api-key/${body.id}`);
    expect(headers).not.toHaveProperty('x-powered-by');
  });

  it.each([
    ['emoji', '🔑 ключ 鍵 👩‍👩‍👧'],
    ['quotes and markup', `"'\`<script>alert(1)</script>\\`],
    ['SQL', `'); DROP TABLE consumer_keys; --`],
    ['a property of objects', '__proto__'],
    ['255 characters of two code units', '🗝'.repeat(255)],
    ['a line separator, which is no control character', 'a\u2028b'],
  ])('takes a name of %s and gives it back everywhere', async (_what, name) => {
    const { id } = await management.createKey(name);
    const { body } = await management.send('get', `/consumer-api-key/${id}`).expect(200);
    expect(body.name).toBe(name);
    const list = await management.send('get', '/consumer-api-key?limit=1').expect(200);
    expect(list.body.apiKeys[0]).toMatchObject({ consumerApiKeyId: id, name });
  });

  it('trims the name, and counts what is left', async () => {
    const { body } = await management.send('post', CREATE, { name: ` ${'x'.repeat(255)}\n\t` }).expect(201);
    expect(body.name).toBe('x'.repeat(255));
  });

  it.each([
    ['a number', 7],
    ['null', null],
    ['a list', ['a']],
    ['an object', { a: 1 }],
    ['empty', ''],
    ['blank', ' \t\n '],
    ['256 characters', 'x'.repeat(256)],
    ['256 emoji', '🗝'.repeat(256)],
    ['a line break inside', 'a\nb'],
    ['NUL', 'a\u0000b'],
    ['a C1 control', 'a\u0085b'],
    ['half a surrogate pair', 'a\ud800'],
  ])('rejects a name that is %s', async (_what, name) => {
    const { body } = await management.send('post', CREATE, { name }).expect(400);
    expect(body).toEqual({
      error: 'The request body has invalid fields; each is listed under "errors".',
      code: 'invalid_body',
      errors: [{ field: 'name', message: NAME_RULE }],
    });
  });

  it('says that a missing name is required, even where a prototype would have one', async () => {
    const { body } = await management
      .send('post', CREATE)
      .set('Content-Type', 'application/json')
      .send('{"__proto__": {"name": "inherited"}, "constructor": {"name": "also"}}')
      .expect(400);
    expect(body.errors[0]).toEqual({ field: 'name', message: `is required and ${NAME_RULE}` });
  });

  it('lists every fault at once, one for each field', async () => {
    const { body } = await management.send('post', CREATE, { name: '\n', expiresAt: 7 }).expect(400);
    expect(body.errors).toEqual([
      { field: 'name', message: NAME_RULE },
      { field: 'expiresAt', message: EXPIRES_AT_RULE },
    ]);
  });

  it('takes an expiry in the future, or null', async () => {
    const expiresAt = '2026-02-03T04:05:07.999Z';
    const { body } = await management.send('post', CREATE, { name: 'n', expiresAt }).expect(201);
    const stored = await management.records.keys.find(body.id);
    expect(stored?.key.expiresAtMs).toBe(Date.UTC(2026, 1, 3, 4, 5, 7));
    await management.send('post', CREATE, { name: 'n', expiresAt: null }).expect(201);
  });

  it('takes an expiry with the offset +00:00, and shows it with Z', async () => {
    const expiresAt = '2027-01-01T00:00:00.123456+00:00';
    const { body } = await management.send('post', CREATE, { name: 'n', expiresAt }).expect(201);
    const shown = await management.send('get', `/consumer-api-key/${body.id}`).expect(200);
    expect(shown.body.expiresAt).toBe('2027-01-01T00:00:00Z');
  });

  it.each([
    ['2026-02-03T04:05:06Z', 'it has passed already'],
    ['1999-01-01T00:00:00+00:00', 'it has passed already'],
    ['2027-01-01T00:00:00+02:00', 'it has an offset: convert it to UTC'],
    ['2027-02-30T00:00:00Z', 'there is no such day or time'],
    ['2027-01-01', 'it has no time of day'],
    ['soon', 'it has another form'],
  ])('rejects the expiry %s and says that %s', async (expiresAt, fault) => {
    const { body } = await management.send('post', CREATE, { name: 'n', expiresAt }).expect(400);
    expect(body.errors).toEqual([{ field: 'expiresAt', message: `${EXPIRES_AT_RULE}; ${fault}` }]);
  });
});

const AT_LEAST_ONE =
  'must have at least one of name, enabled, expiresAt, rateLimitId, externalId, tags, metadata, overrides, allowedIps, allowedOrigins, selfService, addTags, removeTags';

describe('PATCH /consumer-api-key/{consumerApiKeyId}', () => {
  it('changes what is sent and leaves the rest', async () => {
    const { id } = await management.createKey('before');
    management.clock.advance(2000);
    const renamed = await management
      .send('patch', `/consumer-api-key/${id}`, { name: ' after ' })
      .expect(200);
    expect(renamed.body).toEqual({
      consumerApiKeyId: id,
      name: 'after',
      createdAt: '2026-02-03T04:05:06Z',
      lastUpdated: '2026-02-03T04:05:08Z',
      ...DEFAULT_KEY_FIELDS,
      secretHint: expect.stringMatching(/^tg_.{4}….{4}$/),
    });
    const changes = { enabled: false, expiresAt: '2030-01-01T00:00:00Z' };
    const disabled = await management.send('patch', `/consumer-api-key/${id}`, changes).expect(200);
    expect(disabled.body).toMatchObject({ name: 'after', ...changes });
    const lasting = await management
      .send('patch', `/consumer-api-key/${id}`, { expiresAt: null })
      .expect(200);
    expect(lasting.body).toMatchObject({ enabled: false, expiresAt: null });
  });

  it('sets, edits and removes the plan, the owner, the tags and the metadata', async () => {
    const { rateLimitId } = await management.createPlan();
    const { id } = await management.createKey();
    const patch = async (changes: object, status = 200) =>
      (await management.send('patch', `/consumer-api-key/${id}`, changes).expect(status)).body;
    // The path has a backslash and the letters of an escape, not the character.
    const metadata = { invoice: { plan: 'a', seats: 3 }, notes: ['🗝'], path: 'C:\\u0000\\ud800' };
    const set = { rateLimitId, externalId: 'acme', tags: ['b', 'a', 'b'], metadata };
    expect(await patch(set)).toMatchObject({ ...set, tags: ['b', 'a'] });
    expect((await patch({ addTags: ['c', 'a'], removeTags: ['b'] })).tags).toEqual(['a', 'c']);
    const { body: shown } = await management.send('get', `/consumer-api-key/${id}`).expect(200);
    expect(shown).toMatchObject({ rateLimitId, externalId: 'acme', tags: ['a', 'c'], metadata });
    const none = { rateLimitId: null, externalId: null, tags: [], metadata: null };
    expect(await patch(none)).toMatchObject(none);
    expect((await patch({ rateLimitId: 'no-such-plan' }, 404)).code).toBe('plan_not_found');
    const tooMany = Array.from({ length: 21 }, (_, n) => `t${n}`);
    expect((await patch({ tags: tooMany }, 400)).errors[0].field).toBe('tags');
    await patch({ tags: tooMany.slice(1) });
    expect((await patch({ addTags: ['one-more'] }, 400)).errors[0].field).toBe('addTags');
    for (const bad of [
      { metadata: { a: 'x'.repeat(8200) } },
      { metadata: { a: '\0' } },
      { metadata: { a: '\\\ud800' } },
      { metadata: [] },
    ])
      expect((await patch(bad, 400)).errors[0].field).toBe('metadata');
    expect((await patch({ externalId: '' }, 400)).errors[0].field).toBe('externalId');
    expect((await patch({ tags: ['UPPER'] }, 400)).errors[0].field).toBe('tags[0]');
  });

  it.each(['\u202a', '\u202b', '\u202c', '\u202d', '\u202e', '\u2066', '\u2067', '\u2068', '\u2069'])(
    'takes no name, tag and owner with the bidirectional control %j, nor does create',
    async (control) => {
      const { id } = await management.createKey('plain');
      const fields = { name: `a${control}b`, externalId: `${control}b`, tags: [`a${control}`] };
      for (const [field, value] of Object.entries(fields)) {
        const faults = [{ field: field === 'tags' ? 'tags[0]' : field }];
        const created = await management.send('post', CREATE, { name: 'n', [field]: value }).expect(400);
        expect(created.body).toMatchObject({ code: 'invalid_body', errors: faults });
        const changed = await management.send('patch', `/consumer-api-key/${id}`, { [field]: value });
        expect([changed.status, changed.body.errors]).toEqual([
          400,
          [expect.objectContaining(faults[0] ?? {})],
        ]);
      }
    },
  );

  it('takes names in any script, also written from right to left', async () => {
    for (const name of ['مفتاح', 'מפתח 7', '鍵\u200d'])
      await management.send('post', CREATE, { name, externalId: name }).expect(201);
  });

  it('takes null for each field that a key may be without, as create does', async () => {
    const none = {
      ...{ expiresAt: null, rateLimitId: null, externalId: null, tags: null, metadata: null },
      ...{ overrides: null, allowedIps: null, allowedOrigins: null, selfService: null },
    };
    const { id } = (await management.send('post', CREATE, { name: 'none', ...none }).expect(201)).body;
    await management.send('patch', `/consumer-api-key/${id}`, { tags: ['a'], externalId: 'b' }).expect(200);
    const { body } = await management.send('patch', `/consumer-api-key/${id}`, none).expect(200);
    expect(body).toMatchObject({ ...none, tags: [], overrides: {}, selfService: [] });
  });

  it('sets, replaces and removes the addresses from which the key may be used', async () => {
    const { id } = await management.createKey();
    const patch = async (allowedIps: unknown, status = 200) =>
      (await management.send('patch', `/consumer-api-key/${id}`, { allowedIps }).expect(status)).body;
    const allowed = ['203.0.113.7', '198.51.100.0/24', '2001:DB8::/32', '::ffff:192.0.2.0/120', '0.0.0.0/0'];
    expect((await patch(allowed)).allowedIps).toEqual(allowed);
    const { body: shown } = await management.send('get', `/consumer-api-key/${id}`).expect(200);
    expect(shown.allowedIps).toEqual(allowed);
    const { body: made } = await management
      .send('post', CREATE, { name: 'n', allowedIps: ['203.0.113.7'] })
      .expect(201);
    const { body: detail } = await management.send('get', `/consumer-api-key/${made.id}`).expect(200);
    expect(detail.allowedIps).toEqual(['203.0.113.7']);
    const hundred = Array.from({ length: 100 }, (_, n) => `10.0.${n}.0/24`);
    expect((await patch(hundred)).allowedIps).toEqual(hundred);
    expect((await patch([...hundred, '10.1.0.0/24'], 400)).errors[0].field).toBe('allowedIps');
    for (const none of [[], 'any', '10.0.0.0/8'])
      expect((await patch(none, 400)).errors[0].field).toBe('allowedIps');
    expect((await patch(null)).allowedIps).toBeNull();
  });

  it.each([
    ['10.0.0.0/33', ''],
    ['10.0/8', ''],
    ['10.0.0.0/08', ''],
    ['10.0.0.0/-1', ''],
    ['10.0.0.0/', ''],
    ['010.0.0.1', ''],
    [' 10.0.0.1', ''],
    ['fe80::1%eth0', ''],
    ['2001:db8::/129', ''],
    ['localhost', ''],
    ['*', ''],
    ['', ''],
    ['10.1.2.3/8', '; the network that it is in is 10.0.0.0/8'],
    ['2001:db8::1/32', '; the network that it is in is 2001:db8::/32'],
    ['::ffff:10.1.2.3/104', '; the network that it is in is 10.0.0.0/8'],
  ])('rejects the address %j by its place in the list', async (entry, hint) => {
    const allowedIps = ['192.0.2.1', entry];
    const { body } = await management.send('post', CREATE, { name: 'n', allowedIps }).expect(400);
    const rule = 'must be an IPv4 or IPv6 address, or a network like 203.0.113.0/24 or 2001:db8::/32';
    expect(body.errors).toEqual([{ field: 'allowedIps[1]', message: `${rule}${hint}` }]);
  });

  it('sets, replaces and removes the origins of the pages that may use the key', async () => {
    const allowedOrigins = ['https://app.example.com', 'http://localhost:3000', 'https://*.example.com'];
    const { body: made } = await management.send('post', CREATE, { name: 'n', allowedOrigins }).expect(201);
    const path = `/consumer-api-key/${made.id}`;
    expect((await management.send('get', path).expect(200)).body.allowedOrigins).toEqual(allowedOrigins);
    const patch = async (origins: unknown, status = 200) =>
      (await management.send('patch', path, { allowedOrigins: origins }).expect(status)).body;
    const twenty = Array.from({ length: 20 }, (_, n) => `https://p${n}.example.com`);
    expect((await patch(twenty)).allowedOrigins).toEqual(twenty);
    for (const bad of [[], '*', [...twenty, 'https://one-more.example.com']])
      expect((await patch(bad, 400)).errors[0].field).toBe('allowedOrigins');
    const rule =
      'must be an origin as browsers write it, like https://app.example.com or http://localhost:3000, or https://*.example.com for all names directly below';
    expect((await patch(['https://a.example', 'HTTPS://App.example:443/'], 400)).errors).toEqual([
      { field: 'allowedOrigins[1]', message: `${rule}; this one is written https://app.example` },
    ]);
    expect((await patch(['null'], 400)).errors).toEqual([{ field: 'allowedOrigins[0]', message: rule }]);
    expect((await patch(null)).allowedOrigins).toBeNull();
  });

  it('sets and removes what the consumer may do with the key itself', async () => {
    const { body: made } = await management
      .send('post', CREATE, { name: 'n', selfService: ['rotate'] })
      .expect(201);
    const path = `/consumer-api-key/${made.id}`;
    expect((await management.send('get', path).expect(200)).body.selfService).toEqual(['rotate']);
    const patch = async (selfService: unknown, status = 200) =>
      (await management.send('patch', path, { selfService }).expect(status)).body;
    expect((await patch(null)).selfService).toEqual([]);
    expect((await patch(['rotate'])).selfService).toEqual(['rotate']);
    expect((await patch([])).selfService).toEqual([]);
    expect((await patch(['delete'], 400)).errors).toEqual([
      { field: 'selfService[0]', message: 'must be one of rotate' },
    ]);
    expect((await patch('rotate', 400)).errors[0].field).toBe('selfService');
  });

  it('leaves lastUpdated alone when nothing changes', async () => {
    const { id } = await management.createKey('same');
    const { body: before } = await management.send('get', `/consumer-api-key/${id}`).expect(200);
    management.clock.advance(5000);
    const { body } = await management
      .send('patch', `/consumer-api-key/${id}`, { name: ' same ', enabled: true, tags: [] })
      .expect(200);
    expect(body.lastUpdated).toBe(before.lastUpdated);
  });

  it('shows the plan that is bound', async () => {
    const { id } = await management.createKey();
    const { rateLimitId } = await management.createPlan();
    await management
      .send('post', '/api-keys/apply-rate-limit', { consumerApiKeyId: id, rateLimitId })
      .expect(200);
    const { body } = await management.send('patch', `/consumer-api-key/${id}`, { name: 'n' }).expect(200);
    expect(body.rateLimitId).toBe(rateLimitId);
  });

  it.each([
    [{ name: '' }, 'name', NAME_RULE],
    [{ enabled: 'yes' }, 'enabled', 'must be true or false'],
    [{ enabled: null }, 'enabled', 'must be true or false'],
    [{ expiresAt: '2020-01-01T00:00:00Z' }, 'expiresAt', `${EXPIRES_AT_RULE}; it has passed already`],
    [{}, 'body', AT_LEAST_ONE],
  ])('rejects %j', async (changes, field, message) => {
    const { id } = await management.createKey();
    const { body } = await management.send('patch', `/consumer-api-key/${id}`, changes).expect(400);
    expect(body).toMatchObject({ code: 'invalid_body', errors: [{ field, message }] });
  });
});

describe('POST /consumer-api-key/create with a plan that is deleted meanwhile', () => {
  it.each([{}, { 'Idempotency-Key': 'once' }])('is a 404: %j', async (headers) => {
    const { rateLimitId } = await management.createPlan();
    const { status, body } = await actDuring(
      management.records.db,
      sql`DELETE FROM plans WHERE id = ${rateLimitId}`,
      () => management.send('post', CREATE, { name: 'n', rateLimitId }).set(headers),
    );
    expect([status, body.code]).toEqual([404, 'plan_not_found']);
  });
});

describe('DELETE /consumer-api-key/{consumerApiKeyId}', () => {
  it('confirms the deletion, and the key is gone', async () => {
    const { id } = await management.createKey();
    const { body } = await management.send('delete', `/consumer-api-key/${id}`).expect(200);
    expect(body).toEqual({ consumerApiKeyId: id, message: 'The consumer API key was deleted.' });
    await management.send('get', `/consumer-api-key/${id}`).expect(404);
    const again = await management.send('delete', `/consumer-api-key/${id}`).expect(404);
    expect(again.body).toEqual({
      error: 'There is no consumer API key with this id.',
      code: 'key_not_found',
    });
  });
});

describe('an id in the path', () => {
  const ids = [
    UNKNOWN_ID,
    'x',
    UNKNOWN_ID.toLowerCase(),
    '%00',
    '%F0%9F%94%91',
    `${UNKNOWN_ID}%2Fx`,
    "'%20OR%201=1",
  ];
  it.each(ids)('that names no key is a 404: %s', async (id) => {
    const path = `/consumer-api-key/${id}`;
    for (const request of [
      management.send('get', path),
      management.send('delete', path),
      management.send('patch', path, { name: 'n' }),
    ]) {
      expect((await request.expect(404)).body.code).toBe('key_not_found');
    }
  });
});
