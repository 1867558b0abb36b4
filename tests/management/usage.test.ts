import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { outcomesOf, sumOf } from '../../src/console/api/outcome-counts.ts';
import { storeUsage, usageEvents } from '../usage/support/usage-events.ts';
import { startManagement, type TestManagement } from './start-management.ts';

// The clock of the management tests stands at 2026-02-03T04:05:06Z.
const HOUR_MS = 3_600_000;
const hourMs = (text: string) => Date.parse(`${text}:00:00Z`);
const UNKNOWN_ID = 'key_00000000000000000000000000';
/** 3 keys × 24 hours × 150 plans: one row more than fits, and 24 × 449 more. */
const MANY_PLANS = 150;

let management: TestManagement;
let keyId: string;
beforeAll(async () => {
  management = await startManagement();
  keyId = (await management.createKey('=a "key"')).id;
  const other = { keyId: `${UNKNOWN_ID.slice(0, -1)}1`, planId: '' };
  const hours = Array.from({ length: 24 }, (_, hour) => hourMs('2025-06-01T00') + hour * HOUR_MS);
  const plans = Array.from({ length: MANY_PLANS }, (_, index) => `plan-${index}`);
  await storeUsage(management.records.db, [
    usageEvents({ keyId, hourMs: hourMs('2026-02-03T03'), endpoint: '/v1/{id}', customerId: '=1+1' }),
    usageEvents({ keyId, hourMs: hourMs('2026-02-03T04'), requests: 5, successful: 5, forwarded: 0 }),
    usageEvents({ keyId, hourMs: hourMs('2026-02-02T04'), planId: 'gold', endpoint: '/a,"b"\r\n' }),
    usageEvents({ keyId, hourMs: hourMs('2026-02-02T03'), planId: 'gold' }),
    usageEvents({ ...other, hourMs: hourMs('2026-02-03T04'), requests: 100 }),
    ...[1, 2, 3].flatMap((key) =>
      hours.flatMap((at) =>
        plans.map((planId) => usageEvents({ keyId: `${UNKNOWN_ID.slice(0, -1)}${key}`, hourMs: at, planId })),
      ),
    ),
  ]);
});
afterAll(() => management?.stop());

const get = (path: string, status = 200) => management.send('get', path).expect(status);
const ofKey = (query = '') => `/consumer-api-key/${keyId}/usage${query}`;

/** One more than a query may name. */
function manyIds(): string {
  return Array.from({ length: 201 }, (_, index) => `key_${String(index).padStart(26, '0')}`).join(',');
}

const ROW = {
  requests: 10,
  successful: 7,
  failed: 3,
  rateLimited: 2,
  clientErrors: 2,
  serverErrors: 1,
  shadowLimited: 4,
  averageResponseTimeMs: 10.05,
  forwarded: 8,
};

describe('GET /consumer-api-key/{consumerApiKeyId}/usage', () => {
  it('shows the last 24 hours by hour, rounded to whole hours', async () => {
    const { body, headers } = await get(ofKey());
    expect(body).toEqual({
      from: '2026-02-02T04:00:00Z',
      to: '2026-02-03T05:00:00Z',
      interval: 'hour',
      timeZone: 'UTC',
      completeUntil: '2026-02-03T04:05:01Z',
      rows: [
        { start: '2026-02-02T04:00:00Z', ...ROW },
        { start: '2026-02-03T03:00:00Z', ...ROW },
        {
          ...ROW,
          start: '2026-02-03T04:00:00Z',
          requests: 5,
          successful: 5,
          failed: 0,
          averageResponseTimeMs: 0,
          forwarded: 0,
        },
      ],
    });
    expect(headers['cache-control']).toBe('no-store');
    expect(headers.vary).toMatch(/accept/i);
  });

  it('counts days and months of a time zone, whose dates may be given as such', async () => {
    const { body } = await get(
      ofKey('?from=2026-02-02&to=2026-02-04&interval=day&timeZone=Asia/Kolkata&groupBy=rateLimit'),
    );
    expect(body).toMatchObject({
      from: '2026-02-01T19:00:00Z',
      to: '2026-02-03T19:00:00Z',
      timeZone: 'Asia/Kolkata',
    });
    const rows = body.rows.map((row: Record<string, unknown>) => [row.start, row.rateLimitId, row.requests]);
    expect(rows).toEqual([
      ['2026-02-01T18:30:00Z', 'gold', 20],
      ['2026-02-02T18:30:00Z', 'default', 15],
    ]);
  });

  it.each(['Asia/Kolkata', 'Europe/Berlin', 'Asia/Tokyo'])('begins with 1970 in %s', async (timeZone) => {
    const sumSince = async (from: string) => {
      const span = `from=${from}&interval=total&timeZone=${timeZone}`;
      const series = await Promise.all([get(ofKey(`?${span}`)), get(`/api-keys/usage?${span}`)]);
      return series.map(({ body: { from, rows } }) => [rows[0].start === from, rows[0].requests]);
    };
    expect(await sumSince('1970-01-01')).toEqual(await sumSince('1971-01-01'));
  });

  it('groups by endpoint and by customer from days up', async () => {
    const byEndpoint = await get(ofKey('?interval=total&from=2026-02-02&groupBy=endpoint,key'));
    expect(byEndpoint.body.rows).toMatchObject([
      { start: '2026-02-02T00:00:00Z', endpoint: '/a,"b"\r\n', consumerApiKeyId: keyId, requests: 10 },
      { endpoint: '/v1/orders', requests: 15 },
      { endpoint: '/v1/{id}', requests: 10 },
    ]);
    const top = await get(ofKey('?interval=day&from=2026-02-02&groupBy=customer&top=1'));
    expect(top.body.rows).toMatchObject([
      { start: '2026-02-02T00:00:00Z', customerId: 'anonymous', requests: 20 },
      { start: '2026-02-03T00:00:00Z', customerId: '__other__', requests: 10 },
      { start: '2026-02-03T00:00:00Z', customerId: 'anonymous', requests: 5 },
    ]);
  });

  it('says how to weight the means of its rows, as the console does', async () => {
    const hour = (index: number) => ({ keyId, hourMs: hourMs('2026-01-20T00') + index * HOUR_MS });
    await storeUsage(management.records.db, [
      usageEvents(hour(0)),
      usageEvents({ ...hour(1), requests: 20, forwarded: 2, forwardedUs: 60_000, rateLimited: 0 }),
      usageEvents({ ...hour(2), requests: 90, forwarded: 0, forwardedUs: 0, rateLimited: 0 }),
    ]);
    const day = '?from=2026-01-20&to=2026-01-21';
    const { body: hours } = await get(ofKey(day));
    const { body: total } = await get(ofKey(`${day}&interval=total`));
    expect(total.rows).toMatchObject([{ averageResponseTimeMs: 14.04, forwarded: 10 }]);
    expect(sumOf(hours.rows.map(outcomesOf)).averageResponseTimeMs).toBeCloseTo(14.04);
  });

  it('groups by endpoint in UTC under each of its names, and shows the name', async () => {
    const query = '?interval=day&from=2026-02-02&to=2026-02-04&groupBy=endpoint';
    const { body: inUtc } = await get(ofKey(query));
    expect(inUtc.rows).not.toEqual([]);
    for (const timeZone of [
      'utc',
      'Etc/UTC',
      'etc/utc',
      'GMT',
      'Etc/GMT',
      'Etc/GMT+0',
      'Zulu',
      'Universal',
    ]) {
      const { body } = await get(ofKey(`${query}&timeZone=${encodeURIComponent(timeZone)}`));
      expect(body).toEqual({ ...inUtc, timeZone });
    }
  });

  it('is 404 for a key that does not exist, whatever the form of its id', async () => {
    for (const id of [UNKNOWN_ID, 'x', '%00', `${keyId}x`]) {
      expect((await get(`/consumer-api-key/${id}/usage`, 404)).body.code).toBe('key_not_found');
    }
  });

  it('needs the root token', async () => {
    await management.bare('get', ofKey()).expect(401);
    await management.bare('get', '/api-keys/usage').expect(401);
  });

  it('has no filter by key, and no other method', async () => {
    expect((await get(ofKey(`?consumerApiKeyId=${keyId}`), 400)).body.code).toBe('invalid_parameter');
    await management.send('post', ofKey(), {}).expect(405);
  });
});

describe('GET /api-keys/usage', () => {
  it('sums all keys, deleted ones included, or groups and filters them', async () => {
    const { body } = await get('/api-keys/usage?from=2026-02-03&groupBy=key,rateLimit');
    expect(body.rows).toMatchObject([
      { consumerApiKeyId: keyId, rateLimitId: 'default', requests: 10 },
      { consumerApiKeyId: `${UNKNOWN_ID.slice(0, -1)}1`, rateLimitId: null, requests: 100 },
      { consumerApiKeyId: keyId, rateLimitId: 'default', requests: 5 },
    ]);
    const total = '/api-keys/usage?from=2026-02-02&interval=total';
    const requests = async (query: string) => (await get(`${total}${query}`)).body.rows[0]?.requests;
    expect(await requests('')).toBe(135);
    expect(await requests('&rateLimitId=gold')).toBe(20);
    expect(await requests(`&consumerApiKeyId=${keyId}`)).toBe(35);
    expect(await requests(`&consumerApiKeyId=${UNKNOWN_ID}`)).toBeUndefined();
    expect(await requests(`&consumerApiKeyId=${UNKNOWN_ID},${keyId},${keyId}`)).toBe(35);
    expect(await requests(`&consumerApiKeyId=${keyId},${UNKNOWN_ID.slice(0, -1)}1`)).toBe(135);
    expect(await requests('&rateLimitId=unknown')).toBeUndefined();
  });

  it('names the keys that there are, for tokens that may read keys alone', async () => {
    const query = '/api-keys/usage?from=2026-02-03&interval=total&groupBy=rateLimit,key';
    const { body } = await get(query);
    expect(body.rows).toMatchObject([
      { consumerApiKeyId: `${UNKNOWN_ID.slice(0, -1)}1`, consumerApiKeyName: null },
      { consumerApiKeyId: keyId, consumerApiKeyName: '=a "key"' },
    ]);
    const { body: ranked } = await get(`${query}&top=1`);
    expect(ranked.rows).toMatchObject([
      { consumerApiKeyId: `${UNKNOWN_ID.slice(0, -1)}1`, consumerApiKeyName: null },
      { consumerApiKeyId: '__other__', consumerApiKeyName: null },
    ]);
    const { body: ungrouped } = await get('/api-keys/usage?from=2026-02-03&interval=total');
    expect(ungrouped.rows[0]).not.toHaveProperty('consumerApiKeyName');
    const { secret } = await management.createToken({ scopes: ['usage:read'] });
    const { body: nameless } = await management.sendAs(secret, 'get', query).expect(200);
    expect(nameless.rows).toHaveLength(2);
    for (const row of nameless.rows) expect(row).not.toHaveProperty('consumerApiKeyName');
    const file = await management.sendAs(secret, 'get', `${query}&format=csv`).expect(200);
    expect(file.text).toMatch(/^start,rateLimitId,consumerApiKeyId,requests,/);
  });

  it('comes in pages whose cursor keeps the span of the first one', async () => {
    const query = 'interval=hour&groupBy=key&limit=2';
    const first = (await get(`/api-keys/usage?${query}`)).body;
    expect(first.rows).toHaveLength(2);
    management.clock.advance(2 * HOUR_MS);
    const second = (await get(`/api-keys/usage?${query}&cursor=${first.nextCursor}`)).body;
    management.clock.advance(-2 * HOUR_MS);
    expect([second.from, second.to]).toEqual([first.from, first.to]);
    expect(second.nextCursor).toBeUndefined();
    const whole = (await get('/api-keys/usage?interval=hour&groupBy=key')).body;
    expect([...first.rows, ...second.rows]).toEqual(whole.rows);
    for (const other of [
      'groupBy=key&limit=2&interval=day',
      'limit=2',
      `${query}&top=3`,
      `${query}&rateLimitId=x`,
    ]) {
      const { body } = await get(`/api-keys/usage?${other}&cursor=${first.nextCursor}`, 400);
      expect(body.code).toBe('invalid_cursor');
    }
  });

  it.each(['', 'x', 'W10', 'eyJhIjoxfQ', Buffer.from('["a",1,2,3,"\\u0000"]').toString('base64url')])(
    'rejects the cursor %j',
    async (cursor) => {
      const { body } = await get(`/api-keys/usage?groupBy=key&cursor=${cursor}`, 400);
      expect(body.code).toBe('invalid_cursor');
    },
  );

  it('rejects a cursor whose span no query can have', async () => {
    const { nextCursor } = (await get('/api-keys/usage?interval=total&groupBy=key&limit=1')).body;
    const [digest, ...place] = JSON.parse(Buffer.from(nextCursor, 'base64url').toString());
    for (const [fromMs, toMs] of [
      [Date.parse('0000-01-01T00:00:00Z'), place[1]],
      [place[0], Date.UTC(9999, 11, 31, 23, 30)],
    ]) {
      const forged = JSON.stringify([digest, fromMs, toMs, ...place.slice(2)]);
      const cursor = Buffer.from(forged).toString('base64url');
      const { body } = await get(`/api-keys/usage?interval=total&groupBy=key&limit=1&cursor=${cursor}`, 400);
      expect(body.code).toBe('invalid_cursor');
    }
  });

  it('names the largest range that fits for a series of more than 10 000 rows', async () => {
    const day = 'from=2025-06-01&to=2025-06-02&groupBy=key,rateLimit';
    const tooLarge = await get(`/api-keys/usage?${day}`, 400);
    expect(tooLarge.body).toMatchObject({
      code: 'range_too_large',
      largestRange: { from: '2025-06-01T00:00:00Z', to: '2025-06-01T22:00:00Z' },
    });
    const { from, to } = tooLarge.body.largestRange;
    const { body } = await get(`/api-keys/usage?groupBy=key,rateLimit&from=${from}&to=${to}`);
    expect(body.rows).toHaveLength(1000);
    const hours = await get('/api-keys/usage?from=2020-01-01&to=2026-01-01', 400);
    expect(hours.body.largestRange).toEqual({ from: '2020-01-01T00:00:00Z', to: '2021-02-20T16:00:00Z' });
  });

  it.each([
    ['interval=hour&groupBy=endpoint'],
    ['groupBy=customer'],
    ['interval=day&groupBy=endpoint,customer'],
    ['interval=day&groupBy=customer&timeZone=Europe/Berlin'],
    ['interval=day&from=2026-01-01&groupBy=customer&timeZone=Europe/London'],
    ['interval=day&groupBy=customer&timeZone=Etc/GMT-1'],
  ])('rejects the grouping of ?%s', async (query) => {
    expect((await get(`/api-keys/usage?${query}`, 400)).body.code).toBe('unsupported_grouping');
  });

  it.each([
    ...['from=yesterday', 'from=2026-02-30', 'from=2026-02-03T04:05:06', 'from=1969-12-31', 'to=9999-06-01'],
    ...['from=2026-02-04', 'from=2026-02-03&to=2026-02-03', 'from=2026-02-01&from=2026-02-02', 'from='],
    ...['interval=week', 'interval=', 'timeZone=%2B02:00', 'timeZone=Mars/Olympus', 'timeZone='],
    ...[
      'groupBy=',
      'groupBy=key,key',
      'groupBy=key,rateLimit,customer',
      'groupBy=name',
      'groupBy=key&groupBy=key',
    ],
    ...['top=0', 'top=101', 'top=1.5', 'top=3', 'groupBy=key&top=', 'format=xml', 'limit=0', 'limit=1001'],
    ...['consumerApiKeyId=', `consumerApiKeyId=${UNKNOWN_ID},`, `consumerApiKeyId=${manyIds()}`],
    ...['consumerApiKeyId=x', 'consumerApiKeyId=%00', 'rateLimitId=-', 'rateLimitId=%00', 'rateLimitId='],
    'format=csv&limit=10',
  ])('rejects ?%s', async (query) => {
    const { body } = await get(`/api-keys/usage?${query}`, 400);
    expect(body.code).toBe('invalid_parameter');
  });

  it.each([
    ['form=2026-02-01', 'from'],
    ['timezone=UTC', 'timeZone'],
    ['group_by=key', 'groupBy'],
    ['consumerApiKey=x', 'consumerApiKeyId'],
    ['Interval=day', 'interval'],
  ])('rejects the unknown parameter of ?%s with the nearest known one', async (query, nearest) => {
    const { body } = await get(`/api-keys/usage?${query}`, 400);
    expect(body).toMatchObject({ code: 'invalid_parameter', error: expect.stringContaining(`"${nearest}"`) });
  });

  it('rejects names that objects have like any unknown parameter', async () => {
    for (const name of ['__proto__', 'constructor', 'x'.repeat(5000)])
      expect((await get(`/api-keys/usage?${name}=1`, 400)).body.code).toBe('invalid_parameter');
  });
});

describe('usage as CSV', () => {
  const query = '?interval=total&from=2026-02-02&to=2026-02-03T05:00:00Z';

  it('has a header row, and cells that no spreadsheet takes for a formula', async () => {
    const { text, headers } = await get(ofKey(`${query}&groupBy=customer&format=csv`));
    expect(headers['content-type']).toBe('text/csv; charset=utf-8');
    expect(text).toBe(
      'start,customerId,requests,successful,failed,rateLimited,clientErrors,serverErrors,shadowLimited,averageResponseTimeMs,forwarded\r\n' +
        "2026-02-02T00:00:00Z,'=1+1,10,7,3,2,2,1,4,10.05,8\r\n" +
        '2026-02-02T00:00:00Z,anonymous,25,19,6,6,6,3,12,15.08,16\r\n',
    );
  });

  it('has the name of a key in a column beside its id', async () => {
    const { text } = await get('/api-keys/usage?from=2026-02-03&interval=total&groupBy=key&format=csv');
    const [header, ...rows] = text.split('\r\n');
    expect(header).toMatch(/^start,consumerApiKeyId,consumerApiKeyName,requests,/);
    expect(rows).toEqual([
      expect.stringContaining(`${UNKNOWN_ID.slice(0, -1)}1,,100,`),
      expect.stringContaining(`${keyId},"'=a ""key""",15,`),
      '',
    ]);
  });

  it('quotes what RFC 4180 wants quoted', async () => {
    const { text } = await get(ofKey(`${query}&groupBy=endpoint,rateLimit&format=csv`));
    expect(text.split('2026-02-02T00:00:00Z,')[1]).toBe('"/a,""b""\r\n",gold,10,7,3,2,2,1,4,10.05,8\r\n');
  });

  it('is what the Accept header prefers, unless format says otherwise', async () => {
    const accepting = async (accept: string, more = '') => {
      const response = await management
        .send('get', ofKey(`${query}${more}`))
        .set('Accept', accept)
        .expect(200);
      return response.headers['content-type']?.split(';')[0];
    };
    expect(await accepting('text/csv')).toBe('text/csv');
    expect(await accepting('text/csv;q=0.5, application/json;q=0.4')).toBe('text/csv');
    expect(await accepting('application/json, text/csv')).toBe('application/json');
    expect(await accepting('*/*')).toBe('application/json');
    expect(await accepting('image/png')).toBe('application/json');
    expect(await accepting('text/csv', '&format=json')).toBe('application/json');
    expect(await accepting('application/json', '&format=csv')).toBe('text/csv');
  });

  it('has all rows of a series, whatever a page holds, and its errors are JSON', async () => {
    const day = 'from=2025-06-01&to=2025-06-01T20:00:00Z&groupBy=key,rateLimit&format=csv';
    const { text } = await get(`/api-keys/usage?${day}`);
    expect(text.split('\r\n')).toHaveLength(1 + 20 * 3 * MANY_PLANS + 1);
    const { body } = await get('/api-keys/usage?format=csv&groupBy=endpoint', 400);
    expect(body.code).toBe('unsupported_grouping');
  });
});
