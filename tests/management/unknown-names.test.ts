import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ENDPOINTS } from '../../src/management/endpoints.ts';
import { startManagement, type TestManagement } from './start-management.ts';

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

const endpoints = ENDPOINTS.map((endpoint) => ({
  ...endpoint,
  url: endpoint.path.replace(/\{\w+\}/, 'default'),
}));

describe.each(endpoints)('$method $path', ({ method, url, query = {}, body }) => {
  it('rejects an unknown query parameter and names it', async () => {
    const response = await management.send(method, `${url}?nothingLikeIt=1`, body && {}).expect(400);
    expect(response.body).toEqual({
      code: 'invalid_parameter',
      error: expect.stringMatching(/^The query parameter "nothingLikeIt" is unknown\. ./),
    });
  });

  it('knows each query parameter in its own spelling only', async () => {
    for (const name of Object.keys(query)) {
      const misspelt = `_${name.toUpperCase()}`;
      const response = await management.send(method, `${url}?${misspelt}=1`).expect(400);
      expect(response.body.error).toBe(
        `The query parameter "${misspelt}" is unknown. Did you mean "${name}"?`,
      );
    }
  });

  it('knows each field in its own spelling only', async () => {
    for (const name of Object.keys(body?.properties ?? {})) {
      const misspelt = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).concat('_');
      const response = await management.send(method, url, { [misspelt]: null }).expect(400);
      expect(response.body).toMatchObject({ code: 'invalid_body' });
      expect(response.body.errors).toContainEqual({
        field: misspelt,
        message: `is not a field that is known here. Did you mean "${name}"?`,
      });
    }
  });
});

describe('an unknown field', () => {
  const CREATE_KEY = '/consumer-api-key/create';
  const PLAN = { rateLimitId: 'gold', description: '', limit: 1000, period: 'hour' };

  it('of an earlier name makes no key that never expires', async () => {
    const { body } = await management
      .send('post', CREATE_KEY, { name: 'n', expires_at: '2030-01-01T00:00:00Z' })
      .expect(400);
    expect(body.errors).toEqual([
      { field: 'expires_at', message: 'is not a field that is known here. Did you mean "expiresAt"?' },
    ]);
    expect((await management.send('get', '/consumer-api-key').expect(200)).body.apiKeys).toEqual([]);
  });

  it.each<readonly [string, object, string, string]>([
    [
      'a limit',
      { additionalLimits: [{ limitId: 'a', limit: 1, period: 'day', scope: 'key' }] },
      'additionalLimits[0].scope',
      'Known are limitId, limit, period, per, mode, match.',
    ],
    [
      'a limit',
      { additionalLimits: [{ limitId: 'a', limit: 1, periods: 'day', period: 'day' }] },
      'additionalLimits[0].periods',
      'Did you mean "period"?',
    ],
    [
      'a pattern',
      {
        additionalLimits: [
          { limitId: 'a', limit: 1, period: 'day', match: [{ path: '/', method: ['GET'] }] },
        ],
      },
      'additionalLimits[0].match[0].method',
      'Did you mean "methods"?',
    ],
    [
      'a cost',
      { costs: [{ path: '/', cost: 1, reserved: 1 }] },
      'costs[0].reserved',
      'Did you mean "reserve"?',
    ],
  ])('of %s in a plan is named with its path: %j', async (_what, fields, field, hint) => {
    const { body } = await management.send('post', '/rate-limit/create', { ...PLAN, ...fields }).expect(400);
    expect(body.errors).toEqual([{ field, message: `is not a field that is known here. ${hint}` }]);
  });

  it('of an override is named with its path', async () => {
    const overrides = { main: { limit: 5, untill: null } };
    const { body } = await management.send('post', CREATE_KEY, { name: 'n', overrides }).expect(400);
    expect(body.errors).toEqual([
      {
        field: 'overrides.main.untill',
        message: 'is not a field that is known here. Did you mean "until"?',
      },
    ]);
  });

  it('is taken for the only known one that it is the beginning of', async () => {
    const rotate = '/consumer-api-key/key_00000000000000000000000000/rotate';
    const { body } = await management.send('post', rotate, { graceSeconds: 1, grace: '1d' }).expect(400);
    expect(body.errors).toEqual([
      { field: 'grace', message: 'is not a field that is known here. Did you mean "graceSeconds"?' },
    ]);
    const several = await management.send('get', '/consumer-api-key?created=2026-01-01').expect(400);
    expect(several.body.error).toContain('Known are q, status');
  });

  it("in metadata is the caller's own", async () => {
    const metadata = { expires_at: 1, nested: { name: {} } };
    const { body } = await management.send('post', CREATE_KEY, { name: 'n', metadata }).expect(201);
    const shown = await management.send('get', `/consumer-api-key/${body.id}`).expect(200);
    expect(shown.body.metadata).toEqual(metadata);
  });

  it.each(['__proto__', 'constructor', 'toString', '', 'x'.repeat(10_000)])(
    'is repeated in part at most and is none of ours: %j',
    async (name) => {
      const { body } = await management
        .send('post', CREATE_KEY)
        .set('Content-Type', 'application/json')
        .send(`{"name": "n", ${JSON.stringify(name)}: 1}`)
        .expect(400);
      expect(body.errors).toEqual([
        { field: name.slice(0, 64), message: expect.stringContaining('is not a field that is known here') },
      ]);
    },
  );
});
