import { BlockList } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Request, Response } from 'express';
import { authorize } from '../../src/management/authentication.ts';
import { ENDPOINTS } from '../../src/management/endpoints.ts';
import { requiredScopes } from '../../src/permissions/principal.ts';
import { PRESETS } from '../../src/permissions/scopes.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { START_MS, startManagement, type TestManagement } from './start-management.ts';

const ABSENT_KEY = 'key_00000000000000000000000000';

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

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

  it('reject a request that nothing has authenticated, with an error of ours', () => {
    const response = { locals: {} } as Response;
    for (const endpoint of ENDPOINTS) {
      const enter = () => authorize(endpoint, new BlockList())({} as Request, response, () => {});
      expect(enter).toThrow('The request was not authenticated.');
    }
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

  it.each([
    ['the root token', ROOT_TOKEN],
    ['an imported secret', 'imported-Secret.01234567'],
    ['a short secret that was imported as a hash', 'secret-of-20-letters'],
  ])('that are missing are in the audit log without %s, sent in the place of an id', async (_what, text) => {
    const { secret, adminTokenId } = await management.createToken({ scopes: ['webhooks:read'] });
    const paths = ['/consumer-api-key', ...(text.length > 20 ? ['/rate-limit'] : [])];
    for (const path of paths) await management.sendAs(secret, 'get', `${path}/${text}`).expect(403);
    await management.sendAs(secret, 'get', '/rate-limit/monthly_plan-1.5').expect(403);
    const log = await management.send('get', `/tollgate/audit-log?actorId=${adminTokenId}`).expect(200);
    const names = log.body.entries.map(({ target }: { target: { name: string | null } }) => target.name);
    expect(names).toEqual(['monthly_plan-1.5', ...paths.map(() => null)]);
    expect(log.text).not.toContain(text);
  });

  it('that are missing are in the audit log without a reason that is too long', async () => {
    const { secret, adminTokenId } = await management.createToken({ scopes: ['plans:read'] });
    const path = `/consumer-api-key/${ABSENT_KEY}`;
    const reason = 'r'.repeat(257);
    const { body } = await management
      .sendAs(secret, 'delete', path)
      .set('X-Audit-Reason', reason)
      .expect(403);
    expect(body).toMatchObject({ code: 'missing_scope', requiredScope: 'keys:delete' });
    const log = await management.send('get', `/tollgate/audit-log?actorId=${adminTokenId}`).expect(200);
    expect(log.body.entries).toMatchObject([
      { action: 'request.deny', outcome: 'missing_scope', reason: null },
    ]);
  });

  it('that a token lacks again and again are in the audit log a hundred times an hour', async () => {
    const { secret, adminTokenId } = await management.createToken({ scopes: ['webhooks:read'] });
    const path = '/tollgate/events?type=tollgate.admin_token.*';
    const entries = async () => {
      const filter = `action=request.deny&actorId=${adminTokenId}&count=true&limit=1`;
      const { body } = await management.send('get', `/tollgate/audit-log?${filter}`).expect(200);
      return body.total;
    };
    for (let times = 0; times < 110; times += 1) await management.sendAs(secret, 'get', path).expect(403);
    expect(await entries()).toBe(100);
    management.clock.advance(3_600_001);
    await management.sendAs(secret, 'get', path).expect(403);
    expect(await entries()).toBe(101);
  });
});
