import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { PostgresPlanPreviews } from '../../src/storage/postgres/plans/postgres-plan-previews.ts';
import { START_MS, startManagement, type TestManagement } from './start-management.ts';

const HOUR_MS = 3_600_000;
const THIS_HOUR_MS = Math.floor(START_MS / HOUR_MS) * HOUR_MS;

describe('The preview of a plan', () => {
  let management: TestManagement;

  beforeAll(async () => {
    management = await startManagement();
    await management.send('put', '/rate-limit/previewed', { limit: 100, period: 'hour' }).expect(201);
  });

  afterAll(() => management.stop());

  async function key(name: string, fields: object = {}): Promise<string> {
    const body = { name, rateLimitId: 'previewed', ...fields };
    return (await management.send('post', '/consumer-api-key/create', body).expect(201)).body.id;
  }

  /** Requests in an hour, which counts back from the present one. */
  async function use(keyId: string, hoursAgo: number, requests: number, limited = 0): Promise<void> {
    await management.records.db
      .insertInto('usage_hours')
      .values({
        key_id: keyId,
        hour: new Date(THIS_HOUR_MS - hoursAgo * HOUR_MS),
        plan_id: 'previewed',
        ...{ requests, successful: requests - limited, forwarded: requests - limited, forwarded_us: 0 },
        ...{ rate_limited: limited, client_errors: limited, server_errors: 0, shadow_limited: 0 },
        ...{ bytes_in: 0, bytes_out: 0 },
      })
      .execute();
  }

  const preview = (body: object) => management.send('post', '/rate-limit/previewed/preview', body);

  it('says what the draft would have limited, beside what was, by key', async () => {
    const [busy, idle] = [await key('busy'), await key('idle')];
    const raised = await key('raised', { overrides: { main: { limit: 1000 } } });
    await use(busy, 1, 120, 20);
    await use(busy, 2, 60);
    await use(busy, 28 * 24 - 1, 1000);
    await use(raised, 3, 900);
    const { body } = await preview({ limit: 50 }).expect(200);
    expect(body).toEqual({
      ...{ rateLimitId: 'previewed', from: '2026-01-07T00:00:00Z', to: '2026-02-03T04:05:06Z' },
      ...{ keys: 3, keysWereLimited: 1, keysWouldBeLimited: 1 },
      ...{ requests: 1080, wasLimited: 20, wouldBeLimited: 80, costsIgnored: false },
      limits: [
        {
          ...{ limitId: 'main', limit: 50, period: 'hour', quality: 'hours', reason: null },
          ...{ wouldBeLimited: 80, shadowLimit: null },
        },
      ],
      worst: [{ consumerApiKeyId: busy, name: 'busy', requests: 180, wasLimited: 20, wouldBeLimited: 80 }],
    });
    expect((await preview({ limit: 200 }).expect(200)).body.wouldBeLimited).toBe(0);
    for (const id of [busy, idle, raised]) await management.send('delete', `/consumer-api-key/${id}`);
  });

  it('adds hours up over longer windows, and takes the limit that rejects most', async () => {
    const id = await key('by day');
    await use(id, 1, 60);
    await use(id, 2, 60);
    await use(id, 30, 60);
    const additionalLimits = [
      { limitId: 'day', limit: 100, period: 'day' },
      { limitId: 'two-hours', limit: 50, period: '2 hours' },
      { limitId: 'month', limit: 150, period: 'month' },
      { limitId: 'burst', limit: 1, period: 'second' },
      { limitId: 'minute', limit: 1, period: '30 minutes' },
      { limitId: 'shadow', limit: 1, period: 'day', mode: 'shadow' },
      { limitId: 'search', limit: 1, period: 'day', match: [{ path: '/search' }] },
    ];
    const { body } = await preview({ limit: 100, additionalLimits, costs: [{ path: '/x', cost: 0 }] }).expect(
      200,
    );
    const figures = body.limits.map((limit: Record<string, unknown>) => [
      ...[limit.limitId, limit.quality, limit.reason, limit.wouldBeLimited],
    ]);
    expect(figures).toEqual([
      ['main', 'hours', null, 0],
      ['day', 'hours', null, 20],
      ['two-hours', 'hours', null, 80],
      ['month', 'at-least', 'longer_than_preview', 30],
      ['burst', 'at-least', 'shorter_than_hour', 0],
      ['minute', 'at-least', 'shorter_than_hour', 171],
      ['search', 'unknown', 'match', null],
    ]);
    expect(body.limits[5].shadowLimit).toEqual({
      ...{ limitId: 'preview', limit: 1, period: '30 minutes', mode: 'shadow' },
    });
    expect(body).toMatchObject({ wouldBeLimited: 171, costsIgnored: true, keys: 1 });
    await management.send('delete', `/consumer-api-key/${id}`);
  });

  it('knows parts of days, windows that days do not contain, and lower limits of a key', async () => {
    const id = await key('lowered', { overrides: { main: { limit: 10 } } });
    for (const hoursAgo of [1, 2, 3, 4, 11]) await use(id, hoursAgo, 20);
    const additionalLimits = [
      { limitId: 'quarter', limit: 70, period: '6 hours' },
      { limitId: 'three', limit: 30, period: '3 hours' },
      { limitId: 'five', limit: 65, period: '5 hours' },
      { limitId: 'days', limit: 75, period: '36 hours' },
    ];
    const { body } = await preview({ limit: 100, period: 'hour', additionalLimits }).expect(200);
    // 00:00 to 03:00 of the day, and 17:00 of the day before.
    const figures = body.limits.map((limit: Record<string, unknown>) => [limit.reason, limit.wouldBeLimited]);
    const unaligned = 'not_aligned_with_days';
    expect(figures).toEqual([
      ...[
        [null, 50],
        [null, 10],
        [null, 30],
      ],
      ...[
        [unaligned, 15],
        [unaligned, 5],
      ],
    ]);
    await management.send('delete', `/consumer-api-key/${id}`);
  });

  it('gives up in time, and says so', async () => {
    const previews = new PostgresPlanPreviews(management.records.db, 50);
    const request = { planId: 'previewed', isDefault: false, onlyTags: [], limits: [], worst: 1 };
    await management.records.db.transaction().execute(async (other) => {
      await sql`LOCK TABLE usage_key_days IN ACCESS EXCLUSIVE MODE`.execute(other);
      await expect(previews.read({ ...request, fromMs: 0, toMs: START_MS })).rejects.toMatchObject({
        code: 'range_too_large',
      });
    });
  });

  it('is rejected with Retry-After where a token wants too many at a time, and other tokens have theirs', async () => {
    const token = () => management.createToken({ scopes: ['plans:read', 'keys:read', 'usage:read'] });
    const [busy, other] = [await token(), await token()];
    const path = '/rate-limit/previewed/preview';
    const previewAs = ({ secret }: { readonly secret: string }) =>
      management.sendAs(secret, 'post', path, { limit: 1 }).then((response) => response);
    const [many, one] = await management.records.db.transaction().execute(async (holder) => {
      await sql`LOCK TABLE usage_key_days IN ACCESS EXCLUSIVE MODE`.execute(holder);
      const sent = [1, 2, 3, 4].map(() => previewAs(busy));
      const rejected = await Promise.race(sent);
      expect(rejected).toMatchObject({ status: 503, body: { code: 'overloaded' } });
      expect(rejected.headers['retry-after']).toBe('1');
      return [sent, previewAs(other)] as const;
    });
    expect((await one).status).toBe(200);
    expect((await Promise.all(many)).map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 503]);
  });

  it('has only keys that the token sees', async () => {
    const mine = await key('mine', { tags: ['mine'] });
    await key('theirs');
    const scopes = ['plans:read', 'keys:read', 'usage:read'];
    const token = await management.createToken({ scopes, onlyTags: ['mine'] });
    await use(mine, 1, 10);
    const path = '/rate-limit/previewed/preview';
    const { body } = await management.sendAs(token.secret, 'post', path, { limit: 1 }).expect(200);
    expect(body).toMatchObject({ keys: 1, wouldBeLimited: 9 });
    const reader = await management.createToken({ scopes: ['plans:read'] });
    await management.sendAs(reader.secret, 'post', path, { limit: 1 }).expect(403);
    await management.bare('post', path).send({ limit: 1 }).expect(401);
  });

  it('rejects what the plan itself could not be, and changes nothing', async () => {
    await management.send('post', '/rate-limit/unknown/preview', { limit: 1 }).expect(404);
    await preview({ limit: 0 }).expect(400);
    await preview({ limit: 1, costs: [{ path: '/x', cost: 2 }] }).expect(400);
    const { body } = await management.send('get', '/rate-limit/previewed').expect(200);
    expect(body.limit).toBe(100);
  });
});
