import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import {
  DEFAULT_KEY_FIELDS,
  startManagement,
  type TestManagement,
  unavailableCounters,
} from './start-management.ts';

const LIST = '/consumer-api-key';
const UNKNOWN_ID = 'key_01ARZ3NDEKTSV4RRFFQ69G5FAV';

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

async function make(fields: object = {}): Promise<string> {
  return (await management.send('post', `${LIST}/create`, { name: 'n', ...fields }).expect(201)).body.id;
}

async function idsOf(query: string): Promise<readonly string[]> {
  const { body } = await management.send('get', `${LIST}?${query}`).expect(200);
  return body.apiKeys.map(({ consumerApiKeyId }: { consumerApiKeyId: string }) => consumerApiKeyId);
}

describe('GET /consumer-api-key', () => {
  it('lists all but the secret, newest first, and no cursor on the last page', async () => {
    const { id, secret } = await management.createKey('newest');
    const { body } = await management.send('get', LIST).expect(200);
    expect(Object.keys(body)).toEqual(['apiKeys']);
    expect(body.apiKeys[0]).toEqual({
      consumerApiKeyId: id,
      name: 'newest',
      createdAt: '2026-02-03T04:05:06Z',
      lastUpdated: '2026-02-03T04:05:06Z',
      ...DEFAULT_KEY_FIELDS,
      secretHint: `${secret.slice(0, 7)}…${secret.slice(-4)}`,
    });
    const shown = await management.send('get', `${LIST}/${id}`).expect(200);
    expect(shown.body).toMatchObject({ secretHint: body.apiKeys[0].secretHint, lastUsedAt: null });
  });

  it('lists the keys that are bound to a plan, have all tags, or have an owner', async () => {
    const { rateLimitId } = await management.createPlan();
    const bound = await make({ rateLimitId, tags: ['eu', 'paid'] });
    const owned = await make({ externalId: 'cust 42/ü', tags: ['paid:eu'] });
    expect(await idsOf(`rateLimitId=${rateLimitId}`)).toEqual([bound]);
    expect(await idsOf('tag=eu&tag=paid')).toEqual([bound]);
    expect(await idsOf('tag=eu&tag=paid:eu')).toEqual([]);
    expect(await idsOf(`externalId=${encodeURIComponent('cust 42/ü')}`)).toEqual([owned]);
  });

  it('finds a part of name, owner, id or hint of the secret, in any case', async () => {
    const { body: key } = await management
      .send('post', `${LIST}/create`, { name: 'Köln 100% mobile', externalId: 'Cust-4711' })
      .expect(201);
    const hint = `${key.secret.slice(0, 7)}…${key.secret.slice(-4)}`;
    for (const part of [
      'köln 100%',
      'KÖLN',
      'ust-47',
      key.id.slice(9, 28).toLowerCase(),
      hint,
      hint.slice(0, 7),
    ]) {
      expect(await idsOf(`q=${encodeURIComponent(part)}&count=true`)).toContain(key.id);
    }
    for (const part of ['k_ln', '100_', 'mobile\\', key.secret]) {
      expect(await idsOf(`q=${encodeURIComponent(part)}`)).toEqual([]);
    }
  });

  it('chooses keys by their state now', async () => {
    const externalId = 'of the states';
    const soon = await make({ externalId, expiresAt: '2026-02-04T00:00:00Z' });
    const later = await make({ externalId, expiresAt: '2027-01-01T00:00:00Z' });
    const off = await make({ externalId, enabled: false });
    const states = (status: string) => idsOf(`externalId=of+the+states&status=${status}`);
    expect(await states('active')).toEqual([later, soon]);
    expect(await states('expiring')).toEqual([soon]);
    expect(await states('disabled')).toEqual([off]);
    expect(await states('expired')).toEqual([]);
    management.clock.advance(86_400_000);
    expect(await states('expired')).toEqual([soon]);
    expect(await states('disabled,expired')).toEqual([off, soon]);
    expect(await states('disabled&status=expired')).toEqual([off, soon]);
    management.clock.advance(-86_400_000);
    expect(await idsOf('externalId=of+the+states&expiresBefore=2026-06-01T00:00:00Z')).toEqual([soon]);
    expect(await idsOf('externalId=of+the+states&expiresBefore=2027-06-01T00:00:00%2B00:00')).toEqual([
      later,
      soon,
    ]);
    expect(await idsOf('externalId=of+the+states&expiresBefore=2026-06-01')).toEqual([soon]);
  });

  it('chooses keys by when they were made; spans that meet have each key once', async () => {
    const externalId = 'of-a-time';
    const made: string[] = [];
    for (let second = 0; second < 3; second += 1) {
      made.unshift(await make({ externalId }));
      management.clock.advance(1000);
    }
    management.clock.advance(-3000);
    const at = (second: number) => `2026-02-03T04:05:0${6 + second}Z`;
    const between = (from: string, to: string) =>
      idsOf(`externalId=${externalId}&createdAfter=${from}&createdBefore=${to}`);
    expect(await between(at(0), at(3))).toEqual(made);
    expect([...(await between(at(2), at(3))), ...(await between(at(0), at(2)))]).toEqual(made);
    expect(await idsOf(`externalId=${externalId}&createdAfter=2026-02-03T04:05:07+00:00`)).toHaveLength(2);
    expect(await between('2026-02-03', '2026-02-04')).toEqual(made);
    expect(await between('2026-02-04', '2026-02-05')).toEqual([]);
  });

  it('sorts by the last use, and finds what is unused', async () => {
    const externalId = 'of-uses';
    const [never, before, lately] = [
      await make({ externalId }),
      await make({ externalId }),
      await make({ externalId }),
    ];
    await sql`UPDATE usage_totals SET last_used_at = '2026-01-01' WHERE key_id = ${before}`.execute(
      management.records.db,
    );
    await sql`UPDATE usage_totals SET last_used_at = '2026-02-01' WHERE key_id = ${lately}`.execute(
      management.records.db,
    );
    expect(await idsOf(`externalId=${externalId}&sort=lastUsedAt`)).toEqual([lately, before, never]);
    expect(await idsOf(`externalId=${externalId}&sort=lastUsedAt&order=asc`)).toEqual([
      never,
      before,
      lately,
    ]);
    expect(await idsOf(`externalId=${externalId}&unusedSince=2026-01-15T00:00:00Z&sort=lastUsedAt`)).toEqual([
      before,
      never,
    ]);
    const { body } = await management
      .send('get', `${LIST}?externalId=${externalId}&sort=lastUsedAt`)
      .expect(200);
    expect(body.apiKeys.map(({ lastUsedAt }: { lastUsedAt: string }) => lastUsedAt)).toEqual([
      '2026-02-01T00:00:00Z',
      '2026-01-01T00:00:00Z',
      null,
    ]);
  });

  it('reads every key once over many pages, also when keys are created meanwhile', async () => {
    for (let i = 0; i < 12; i += 1) await management.createKey(`page ${i}`);
    const { body: all } = await management.send('get', LIST).expect(200);
    const seen: unknown[] = [];
    let query = '?limit=5';
    for (let pages = 0; pages < 20; pages += 1) {
      const { body } = await management.send('get', `${LIST}${query}`).expect(200);
      seen.push(...body.apiKeys);
      if (body.nextCursor === undefined) break;
      expect(body.apiKeys).toHaveLength(5);
      query = `?limit=5&cursor=${encodeURIComponent(body.nextCursor)}`;
      await management.createKey('meanwhile');
    }
    expect(seen).toEqual(all.apiKeys);
  });

  it.each(['createdAt', 'name', 'lastUsedAt', 'expiresAt'])('reads on in both orders by %s', async (sort) => {
    for (const order of ['asc', 'desc']) {
      const query = `sort=${sort}&order=${order}`;
      const { body } = await management.send('get', `${LIST}?${query}&limit=4&count=true`).expect(200);
      const rest = await idsOf(`${query}&cursor=${body.nextCursor}`);
      const whole = await idsOf(query);
      expect(rest).toEqual(whole.slice(4));
      expect(body.total).toBe(whole.length);
    }
  });

  it('rejects the cursor of another sort or filter, and one that it has not given', async () => {
    const { body } = await management.send('get', `${LIST}?limit=1&sort=name&q=n`).expect(200);
    const cursor = body.nextCursor;
    await management
      .send('get', `${LIST}?limit=7&sort=name&q=n&count=true&include=usage&cursor=${cursor}`)
      .expect(200);
    const [digest] = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    const made = (...place: readonly unknown[]) =>
      Buffer.from(JSON.stringify([digest, ...place])).toString('base64url');
    for (const query of [
      `sort=name&q=N2&cursor=${cursor}`,
      `sort=name&order=desc&q=n&cursor=${cursor}`,
      `sort=createdAt&q=n&cursor=${cursor}`,
      `q=n&cursor=${cursor}`,
      `sort=name&q=n&tag=a&cursor=${cursor}`,
      `sort=name&q=n&cursor=${made('a', 'b')}`,
      `sort=name&q=n&cursor=${made(1, UNKNOWN_ID)}`,
      `sort=name&q=n&cursor=${made('\u0000', UNKNOWN_ID)}`,
      `sort=name&q=n&cursor=${made('a', UNKNOWN_ID, 1)}`,
      'cursor=',
      'cursor=x',
      `cursor=${UNKNOWN_ID}`,
      'cursor=%00',
      'limit=5&cursor=%zz',
    ]) {
      const response = await management.send('get', `${LIST}?${query}`).expect(400);
      expect([query, response.body.code]).toEqual([query, 'invalid_cursor']);
    }
    expect(await idsOf(`sort=name&q=n&cursor=${made('', UNKNOWN_ID)}`)).not.toEqual([]);
  });

  it.each([-8.64e15, 8.64e15, Date.UTC(10_000, 0, 1), 0.5, '0', null])(
    'rejects a cursor with the instant %p',
    async (value) => {
      await Promise.all([make({}), make({})]);
      const { body } = await management.send('get', `${LIST}?limit=1`).expect(200);
      const [digest] = JSON.parse(Buffer.from(body.nextCursor, 'base64url').toString());
      const cursor = Buffer.from(JSON.stringify([digest, value, UNKNOWN_ID])).toString('base64url');
      const rejected = await management.send('get', `${LIST}?limit=1&cursor=${cursor}`).expect(400);
      expect(rejected.body.code).toBe('invalid_cursor');
    },
  );

  it('shows usage and limits of each key where they are asked for', async () => {
    const { rateLimitId } = await management.createPlan({
      limit: 5,
      additionalLimits: [{ limitId: 'burst', limit: 2, period: 'second' }],
    });
    const externalId = 'with-more';
    const [plain, used] = [await make({ externalId }), await make({ externalId, rateLimitId })];
    management.usages.set(used, {
      ...{ requests: 3, successful: 2, failed: 1, lastUsedAtMs: Date.UTC(2026, 1, 3, 4, 5) },
      ...{ endpoints: [], customers: [] },
    });
    await management
      .send('post', `${LIST}/${used}/limits/grant`, { requests: 7, limitId: 'burst' })
      .expect(200);
    const { body } = await management
      .send('get', `${LIST}?externalId=${externalId}&include=usage,limits`)
      .expect(200);
    expect(body.apiKeys).toMatchObject([
      {
        consumerApiKeyId: used,
        lastUsedAt: '2026-02-03T04:05:00Z',
        usage: { totalRequests: 3, successfulRequests: 2, failedRequests: 1 },
        limits: [
          { limitId: 'main', limit: 5, remaining: 5 },
          { limitId: 'burst', granted: 7, remaining: 9, open: true },
        ],
      },
      {
        consumerApiKeyId: plain,
        lastUsedAt: null,
        usage: { totalRequests: 0, successfulRequests: 0, failedRequests: 0 },
        limits: [{ limitId: 'main', limit: 1000, used: 0, remaining: 1000, open: false }],
      },
    ]);
    const detail = await management.send('get', `${LIST}/${used}/limits`).expect(200);
    expect(body.apiKeys[0].limits).toEqual(detail.body.limits);
    const only = await management.send('get', `${LIST}?externalId=${externalId}&include=limits`).expect(200);
    expect(only.body.apiKeys[0]).not.toHaveProperty('usage');
    expect(only.body.apiKeys[0]).toMatchObject({ limits: body.apiKeys[0].limits });
  });

  it('has at most 200 keys with more of each, and says when there are more', async () => {
    const { body } = await management.send('get', `${LIST}?include=usage&limit=200`).expect(200);
    expect(body.apiKeys.length).toBeGreaterThan(0);
    for (const limit of [201, 1000]) {
      const rejected = await management.send('get', `${LIST}?include=limits&limit=${limit}`).expect(400);
      expect(rejected.body).toEqual({
        error: 'The query parameter "limit" must be at most 200 with "include".',
        code: 'invalid_parameter',
      });
    }
  });

  it('shows counts as null while their store is down', async () => {
    const other = await startManagement({ counters: unavailableCounters() });
    await other.createKey();
    const { body } = await other.send('get', `${LIST}?include=limits`).expect(200);
    expect(body.apiKeys[0].limits).toMatchObject([
      { limitId: 'main', limit: 1000, used: null, remaining: null },
    ]);
    await other.stop();
  });

  it.each([
    ...[
      'limit=0',
      'limit=1001',
      'limit=-1',
      'limit=1.5',
      'limit=1e2',
      'limit=',
      'limit=x',
      'limit=1&limit=2',
    ],
    ...['cursor=a&cursor=b', 'q=', `q=${'x'.repeat(256)}`, 'q=%00', 'q=a%0Ab', 'q=a&q=b'],
    ...[
      'status=',
      'status=on',
      'status=active,',
      'status=active,active,active,active,active',
      'status=ACTIVE',
    ],
    ...[
      'tag=A',
      'externalId=',
      'rateLimitId=%00',
      `externalId=${'x'.repeat(129)}`,
      `tag=${[...'abcdefghijklmnopqrstu'].join('&tag=')}`,
    ],
    ...['createdAfter=yesterday', 'createdBefore=2026-02-30', 'expiresBefore=2026-01-01T00:00:00%2B02:00'],
    ...['unusedSince=', 'unusedSince=2026-02-30T00:00:00Z', 'sort=id', 'sort=', 'sort=name,createdAt'],
    ...[
      'order=up',
      'order=ASC',
      'include=',
      'include=secret',
      'include=usage,secret',
      'count=1',
      'count=TRUE',
    ],
  ])('rejects ?%s', async (query) => {
    const { body } = await management.send('get', `${LIST}?${query}`).expect(400);
    expect(body.code).toBe('invalid_parameter');
  });

  it('takes the largest page, and names the nearest of an unknown parameter', async () => {
    await management.send('get', `${LIST}?limit=1000`).expect(200);
    for (const [unknown, nearest] of [
      ['tags', 'tag'],
      ['created_after', 'createdAfter'],
      ['statuses', 'status'],
    ]) {
      const { body } = await management.send('get', `${LIST}?${unknown}=x`).expect(400);
      expect(body).toMatchObject({
        code: 'invalid_parameter',
        error: expect.stringContaining(`"${nearest}"`),
      });
    }
    const { body } = await management.send('get', `${LIST}?name=x`).expect(400);
    expect(body.error).toContain('Known are q, status,');
  });

  it('responds to HEAD as to GET, without the body', async () => {
    const { headers, text } = await management.send('head', LIST).expect(200);
    expect(Number(headers['content-length'])).toBeGreaterThan(2);
    expect(text).toBeUndefined();
  });
});
