import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startManagement, type TestManagement } from './start-management.ts';

const APPLY = '/api-keys/apply-rate-limit';

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

describe('POST /api-keys/apply-rate-limit', () => {
  it('responds with the ids, a message, and the limit and period that now apply', async () => {
    const { id } = await management.createKey();
    const { rateLimitId } = await management.createPlan({ limit: 42, period: '15 Minutes' });
    const { body } = await management.send('post', APPLY, { consumerApiKeyId: id, rateLimitId }).expect(200);
    expect(body).toEqual({
      consumerApiKeyId: id,
      rateLimitId,
      message: 'The rate limit plan was applied to the consumer API key.',
      limit: 42,
      period: '15 Minutes',
    });
    const detail = await management.send('get', `/consumer-api-key/${id}`).expect(200);
    expect(detail.body.usage.rateLimits).toMatchObject({ limit: 42, remaining: 42 });
  });

  it('sets lastUpdated of the key', async () => {
    const { id } = await management.createKey();
    const { rateLimitId } = await management.createPlan();
    management.clock.advance(60_000);
    await management.send('post', APPLY, { consumerApiKeyId: id, rateLimitId }).expect(200);
    const { body } = await management.send('get', `/consumer-api-key/${id}`).expect(200);
    expect(Date.parse(body.lastUpdated) - Date.parse(body.createdAt)).toBe(60_000);
  });

  it.each(['key_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'x', 'a\u0000b', '🔑', 'x'.repeat(5000)])(
    'does not know the key %s',
    async (consumerApiKeyId) => {
      const body = { consumerApiKeyId, rateLimitId: 'default' };
      expect((await management.send('post', APPLY, body).expect(404)).body.code).toBe('key_not_found');
    },
  );

  it.each(['nope', ' default', 'a\u0000b', '🔑', 'x'.repeat(5000)])(
    'does not know the plan %s',
    async (rateLimitId) => {
      const { id } = await management.createKey();
      const body = { consumerApiKeyId: id, rateLimitId };
      expect((await management.send('post', APPLY, body).expect(404)).body.code).toBe('plan_not_found');
    },
  );

  it('lists both fields when they are missing or of another type', async () => {
    const rules = [
      { field: 'consumerApiKeyId', message: 'must be the id of a consumer API key' },
      { field: 'rateLimitId', message: 'must be the id of a rate limit plan' },
    ];
    const missing = await management.send('post', APPLY, {}).expect(400);
    expect(missing.body.errors).toEqual(
      rules.map(({ field, message }) => ({ field, message: `is required and ${message}` })),
    );
    for (const value of ['', 7, null, ['x'], {}]) {
      const body = { consumerApiKeyId: value, rateLimitId: value };
      expect((await management.send('post', APPLY, body).expect(400)).body.errors).toEqual(rules);
    }
  });
});
