import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { subject } from '../support/limiter-stores.ts';
import {
  DEFAULT_KEY_FIELDS,
  type Replacements,
  START_MS,
  startManagement,
  type TestManagement,
} from './start-management.ts';

const running: TestManagement[] = [];
let management: TestManagement;
beforeAll(async () => {
  management = await start();
});
afterAll(async () => {
  for (const each of running) await each.stop();
});

async function start(replacements: Replacements = {}): Promise<TestManagement> {
  const started = await startManagement(replacements);
  running.push(started);
  return started;
}

describe('GET /consumer-api-key/{consumerApiKeyId}', () => {
  it('shows a key that was never used with its secret and the default plan, whole', async () => {
    const { id, secret } = await management.createKey('fresh');
    const { body, headers } = await management.send('get', `/consumer-api-key/${id}`).expect(200);
    expect(body).toEqual({
      consumerApiKeyId: id,
      name: 'fresh',
      secret,
      createdAt: '2026-02-03T04:05:06Z',
      lastUpdated: '2026-02-03T04:05:06Z',
      ...DEFAULT_KEY_FIELDS,
      secretHint: expect.stringMatching(/^tg_.{4}….{4}$/),
      usage: {
        totalRequests: 0,
        successfulRequests: 0,
        failedRequests: 0,
        // 04:05:06.789 and one hour, rounded up.
        rateLimits: { limit: 1000, remaining: 1000, resetTime: '2026-02-03T05:05:07Z' },
        endpoints: [],
        usageByCustomer: [],
      },
    });
    expect(headers['cache-control']).toBe('no-store');
  });

  it('shows asterisks and leaves no entry in the audit log with reveal=false', async () => {
    const { id, secret } = await management.createKey('not revealed');
    const hidden = await management.send('get', `/consumer-api-key/${id}?reveal=false`).expect(200);
    expect(hidden.body.secret).toMatch(/^tg_\*+$/);
    expect(hidden.headers.etag).toMatch(/^"/);
    const showings = async () =>
      (await management.send('get', `/tollgate/audit-log?action=key.show-secret&targetId=${id}`)).body
        .entries;
    expect(await showings()).toEqual([]);
    const shown = await management.send('get', `/consumer-api-key/${id}?reveal=true`).expect(200);
    expect([shown.body.secret, (await showings()).length]).toEqual([secret, 1]);
    await management.send('get', `/consumer-api-key/${id}?reveal=no`).expect(400);
  });

  it('leaves no entry in the audit log for HEAD, which shows no secret', async () => {
    const { id } = await management.createKey('only looked for');
    const { headers } = await management.send('head', `/consumer-api-key/${id}`).expect(200);
    expect(headers.etag).toMatch(/^"/);
    const log = `/tollgate/audit-log?action=key.show-secret&targetId=${id}`;
    expect((await management.send('get', log)).body.entries).toEqual([]);
  });

  it('shows the open window: what remains, and the same reset as long as it is open', async () => {
    const { id, snapshot } = await boundKey(3, 'minute');
    const path = `/consumer-api-key/${id}`;
    management.limiter.decide(
      subject(id, { version: snapshot.version, limits: snapshot.plan?.limits.all ?? [] }),
      () => {},
    );
    const resetTime = '2026-02-03T04:06:07Z';
    const first = await management.send('get', path).expect(200);
    expect(first.body.usage.rateLimits).toEqual({ limit: 3, remaining: 2, resetTime });
    management.clock.advance(30_000);
    const later = await management.send('get', path).expect(200);
    expect(later.body.usage.rateLimits).toEqual({ limit: 3, remaining: 2, resetTime });
    management.clock.advance(30_000);
    const after = await management.send('get', path).expect(200);
    expect(after.body.usage.rateLimits).toMatchObject({ remaining: 3, resetTime: '2026-02-03T04:07:07Z' });
    management.clock.advance(START_MS - management.clock.nowMs());
  });

  it('never shows a negative remainder, even when the limit fell below what was used', async () => {
    const { id, rateLimitId, snapshot } = await boundKey(3, 'minute');
    for (let i = 0; i < 3; i += 1) {
      management.limiter.decide(
        subject(id, { version: snapshot.version, limits: snapshot.plan?.limits.all ?? [] }),
        () => {},
      );
    }
    await management.send('patch', `/rate-limit/${rateLimitId}`, { limit: 1 }).expect(200);
    const { body } = await management.send('get', `/consumer-api-key/${id}`).expect(200);
    expect(body.usage.rateLimits).toMatchObject({ limit: 1, remaining: 0 });
  });

  it('shows the usage as it was read, field by field', async () => {
    const { id } = await management.createKey();
    const counts = { requests: 3, successful: 2, failed: 1 };
    management.usages.set(id, {
      ...counts,
      lastUsedAtMs: Date.UTC(2026, 1, 3, 4, 4, 4),
      endpoints: [{ endpoint: '/v1/orders', ...counts, averageResponseTimeMs: 8.25 }],
      customers: [
        { customerId: 'anonymous', requests: 2, successful: 2, failed: 0 },
        { customerId: 'acme', requests: 1, successful: 0, failed: 1 },
      ],
    });
    const { body } = await management.send('get', `/consumer-api-key/${id}`).expect(200);
    expect(body.lastUsedAt).toBe('2026-02-03T04:04:04Z');
    expect(body.usage).toMatchObject({
      totalRequests: 3,
      successfulRequests: 2,
      failedRequests: 1,
      endpoints: [{ endpoint: '/v1/orders', ...counts, averageResponseTimeMs: 8.25 }],
      usageByCustomer: [
        { customerId: 'anonymous', requests: 2, successful: 2, failed: 0 },
        { customerId: 'acme', requests: 1, successful: 0, failed: 1 },
      ],
    });
  });

  it('has null for rateLimits when no limit applies', async () => {
    const unlimited = await start({ defaultPlanId: null });
    const { id } = await unlimited.createKey();
    const { body } = await unlimited.send('get', `/consumer-api-key/${id}`).expect(200);
    expect(body.usage.rateLimits).toBeNull();
  });

  it('shows asterisks for a secret that is shown only once', async () => {
    const once = await start({ reveal: 'once' });
    const { id } = await once.createKey();
    const { body } = await once.send('get', `/consumer-api-key/${id}`).expect(200);
    expect(body.secret).toMatch(/^tg_\*+$/);
  });
});

/** A key bound to a new plan, and the snapshot that a replica would decide on. */
async function boundKey(limit: number, period: string) {
  const { id } = await management.createKey();
  const { rateLimitId } = await management.createPlan({ limit, period });
  await management
    .send('post', '/api-keys/apply-rate-limit', { consumerApiKeyId: id, rateLimitId })
    .expect(200);
  const snapshot = (await management.records.keys.find(id))?.snapshot;
  if (snapshot === undefined) throw new Error('the key that was just made is gone');
  return {
    id,
    rateLimitId,
    snapshot,
  };
}
