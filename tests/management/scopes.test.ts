import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ENDPOINTS } from '../../src/management/endpoints.ts';
import { requiredScopes } from '../../src/permissions/principal.ts';
import { PRESETS, SCOPES, type Scope } from '../../src/permissions/scopes.ts';
import { START_MS, startManagement, type TestManagement } from './start-management.ts';

const ABSENT_KEY = 'key_00000000000000000000000000';

let management: TestManagement;
const secrets = new Map<Scope, string>();
beforeAll(async () => {
  management = await startManagement();
  for (const scope of SCOPES) {
    const { secret } = await management.createToken({ name: scope, scopes: [scope] });
    secrets.set(scope, secret);
  }
});
afterAll(() => management.stop());

describe.each([...ENDPOINTS])('$operationId', ({ method, path, scope, operationId, eventStream }) => {
  // A stream would not end; the scope is checked before the query.
  const target = path.replace(/\{\w+\}/, ABSENT_KEY) + (eventStream ? '?type=unknown' : '');
  const needed = requiredScopes(scope);
  const call = async (secret: string) => {
    const { status, body } = await management.sendAs(secret, method, target);
    return { status, body };
  };

  it.each(SCOPES)('rejects a token with only %s unless that is enough', async (granted) => {
    const { status, body } = await call(secrets.get(granted) ?? '');
    expect(status).not.toBe(401);
    const missing = needed.filter((wanted) => wanted !== granted);
    if (missing.length === 0) expect(status).not.toBe(403);
    else expect({ status, body }).toMatchObject({ status: 403, body: { code: 'missing_scope' } });
    if (status === 403) expect(missing).toContain(body.requiredScope);
  });

  it('allows a token with what it needs, and logs no rejection of it', async () => {
    const scopes = needed.length === 0 ? ['keys:read'] : needed;
    const { secret } = await management.createToken({ name: operationId, scopes });
    const { status } = await call(secret);
    expect([401, 403]).not.toContain(status);
  });
});

describe('scopes', () => {
  it('are needed everywhere but for whoami and the OpenAPI document', () => {
    const open = ENDPOINTS.filter(({ scope }) => requiredScopes(scope).length === 0);
    expect(open.map(({ operationId }) => operationId).filter((id) => id !== 'openApiDocument')).toEqual([
      'whoami',
    ]);
  });

  it('to read are not enough for what changes something', () => {
    const readable = ENDPOINTS.filter(
      ({ method, scope }) =>
        method !== 'get' && requiredScopes(scope).every((wanted) => wanted.endsWith(':read')),
    );
    // A preview changes nothing. Find takes a body, so that the secret is in no URL. Jobs need the scope of their action as well, and have tests of it.
    expect(readable.map(({ path }) => path)).toEqual([
      '/api-keys/find',
      '/api-keys/bulk',
      '/rate-limit/{rateLimitId}/preview',
      '/tollgate/job/{jobId}/cancel',
    ]);
  });

  it.each(Object.entries(PRESETS))('are granted together by the preset %s', async (preset, expected) => {
    const { body } = await management
      .send('post', '/tollgate/admin-token/create', { name: preset, scopes: [preset] })
      .expect(201);
    expect(body.scopes.toSorted()).toEqual([...expected].toSorted());
  });

  it('that are missing are in the audit log with who tried what', async () => {
    const token = await management.createToken({ name: 'curious', scopes: ['plans:read'] });
    const path = `/consumer-api-key/${ABSENT_KEY}`;
    await management.sendAs(token.secret, 'delete', path).set('X-Audit-Reason', 'wrong window').expect(403);
    await management.sendAs(token.secret, 'get', '/rate-limit').expect(200);
    const rows = await management.records.db
      .selectFrom('audit_log')
      .selectAll()
      .where('actor_id', '=', token.adminTokenId)
      .execute();
    expect(rows).toEqual([
      expect.objectContaining({
        at: new Date(START_MS),
        action: 'request.deny',
        actor_type: 'token',
        actor_name: 'curious',
        target_type: 'operation',
        target_id: 'deleteConsumerKey',
        target_name: ABSENT_KEY,
        reason: 'wrong window',
        outcome: 'missing_scope',
      }),
    ]);
  });
});
