import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { gatewayVersion } from '../../src/platform/gateway-version.ts';
import { START_MS, startManagement, type TestManagement } from './start-management.ts';

const ABSENT = '/tollgate/admin-token/adm_00000000000000000000000000';

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

const at = (token: { readonly adminTokenId: string }) => `/tollgate/admin-token/${token.adminTokenId}`;
const isAccepted = async (secret: string) =>
  (await management.sendAs(secret, 'get', '/tollgate/whoami')).status === 200;
/** The outcomes of the token's requests in the audit log. */
async function outcomesOf(token: { readonly adminTokenId: string }): Promise<readonly string[]> {
  const entries = await management.records.db
    .selectFrom('audit_log')
    .select('outcome')
    .where('actor_id', '=', token.adminTokenId)
    .where('action', '=', 'request.deny')
    .orderBy('sequence')
    .execute();
  return entries.map(({ outcome }) => outcome);
}

describe('an admin token', () => {
  it('is made with a secret that is shown once and stored nowhere', async () => {
    const fields = {
      name: '  Ops  ',
      scopes: ['plans:read', 'keys:read', 'keys:read'],
      onlyTags: ['eu'],
      allowedIps: ['127.0.0.0/8', '::1'],
      expiresAt: '2030-01-01T00:00:00Z',
    };
    const { body, headers } = await management
      .send('post', '/tollgate/admin-token/create', fields)
      .expect(201);
    const { secret, ...shown } = body;
    expect(secret).toMatch(/^tga_[0-9A-Za-z]{36}$/);
    expect(shown).toEqual({
      adminTokenId: expect.stringMatching(/^adm_[0-9A-Z]{26}$/),
      name: 'Ops',
      scopes: ['keys:read', 'plans:read'],
      onlyTags: ['eu'],
      allowedIps: ['127.0.0.0/8', '::1'],
      expiresAt: '2030-01-01T00:00:00Z',
      createdAt: '2026-02-03T04:05:06Z',
      lastUpdated: '2026-02-03T04:05:06Z',
      lastUsedAt: null,
      secretHint: `${secret.slice(0, 8)}…${secret.slice(-4)}`,
      rotation: null,
    });
    expect(headers.location).toBe(at(body));
    expect((await management.send('get', at(body)).expect(200)).body).toEqual(shown);
    const { rows } = await management.records.db.executeQuery({
      ...management.records.db.selectFrom('admin_tokens').selectAll().compile(),
    });
    expect(JSON.stringify(rows)).not.toContain(secret.slice(8, -4));
  });

  it.each([
    [{}, 'name'],
    [{ name: 'x' }, 'scopes'],
    [{ name: 'x', scopes: [] }, 'scopes'],
    [{ name: 'x', scopes: ['keys:everything'] }, 'scopes[0]'],
    [{ name: 'x', scopes: 'keys:read' }, 'scopes'],
    [{ name: '', scopes: ['keys:read'] }, 'name'],
    [{ name: 'x', scopes: ['keys:read'], onlyTags: ['No'] }, 'onlyTags[0]'],
    [{ name: 'x', scopes: ['keys:read'], allowedIps: ['10.1.2.3/8'] }, 'allowedIps[0]'],
    [{ name: 'x', scopes: ['keys:read'], expiresAt: '2020-01-01T00:00:00Z' }, 'expiresAt'],
    [{ name: 'x', scopes: ['keys:read'], secret: 'mine' }, 'secret'],
  ])('is not made from %j', async (fields, field) => {
    const { body } = await management.send('post', '/tollgate/admin-token/create', fields).expect(400);
    expect(body.errors).toContainEqual(expect.objectContaining({ field }));
  });

  it('is not made with a passed expiry, and the error has the rule of tokens', async () => {
    const fields = { name: 'x', scopes: ['keys:read'], expiresAt: '2020-01-01T00:00:00Z' };
    const { body } = await management.send('post', '/tollgate/admin-token/create', fields).expect(400);
    expect(body.errors[0].message).toMatch(/null for a token that never expires; it has passed already$/);
  });

  it('is listed newest first, page by page', async () => {
    const older = await management.createToken();
    const newer = await management.createToken();
    const first = await management.send('get', '/tollgate/admin-token?limit=1').expect(200);
    expect(first.body.adminTokens.map(at)).toEqual([at(newer)]);
    const path = `/tollgate/admin-token?limit=1&cursor=${first.body.nextCursor}`;
    const second = await management.send('get', path).expect(200);
    expect(second.body.adminTokens.map(at)).toEqual([at(older)]);
    const all = await management.send('get', '/tollgate/admin-token').expect(200);
    expect(all.body).not.toHaveProperty('nextCursor');
    expect(all.body).not.toHaveProperty('total');
    const counted = await management.send('get', `${path}&count=true`).expect(200);
    expect(counted.body.total).toBe(all.body.adminTokens.length);
    expect(JSON.stringify(all.body)).not.toMatch(/tga_[0-9A-Za-z]{36}/);
    const { body } = await management.send('get', '/tollgate/admin-token?cursor=eHg').expect(400);
    expect(body.code).toBe('invalid_cursor');
  });

  it('counts only those that the principal sees', async () => {
    const limited = { scopes: ['tokens:write'], onlyTags: ['counted'] };
    const { secret } = await management.createToken(limited);
    await management.createToken();
    await management.createToken({ ...limited, onlyTags: ['counted', 'more'] });
    const { body } = await management
      .sendAs(secret, 'get', '/tollgate/admin-token?count=true&limit=1')
      .expect(200);
    expect(body).toMatchObject({ total: 2, adminTokens: [expect.anything()] });
  });

  it('that does not exist is 404', async () => {
    for (const [method, path, body] of [
      ['get', ABSENT],
      ['patch', ABSENT, { name: 'x' }],
      ['delete', ABSENT],
      ['post', `${ABSENT}/rotate`, { graceSeconds: 0 }],
      ['get', '/tollgate/admin-token/no-id'],
    ] as const) {
      const response = await management.send(method, path, body).expect(404);
      expect(response.body.code).toBe('admin_token_not_found');
    }
  });

  it('holds what was changed with the next request', async () => {
    const token = await management.createToken({ scopes: ['plans:read'] });
    await management.sendAs(token.secret, 'get', '/rate-limit').expect(200);
    await management.send('patch', at(token), { scopes: ['keys:read'], name: 'other' }).expect(200);
    await management.sendAs(token.secret, 'get', '/rate-limit').expect(403);
    const { body } = await management.sendAs(token.secret, 'get', '/tollgate/whoami').expect(200);
    expect(body).toMatchObject({ name: 'other', scopes: ['keys:read'] });
    await management.send('delete', at(token)).expect(200);
    const rejected = await management.sendAs(token.secret, 'get', '/tollgate/whoami').expect(401);
    expect(rejected.body.code).toBe('invalid_root_token');
    expect(rejected.headers['www-authenticate']).toContain('invalid_token');
  });

  it('is changed only in the state that If-Match names', async () => {
    const token = await management.createToken();
    const { etag = '' } = (await management.send('get', at(token)).expect(200)).headers;
    await management.send('patch', at(token), { name: 'first' }).set('If-Match', etag).expect(200);
    const late = await management
      .send('patch', at(token), { name: 'second' })
      .set('If-Match', etag)
      .expect(412);
    expect(late.body.code).toBe('version_mismatch');
    await management.send('delete', at(token)).set('If-Match', etag).expect(412);
    expect((await management.send('get', at(token)).expect(200)).body.name).toBe('first');
  });

  it('that is changed to what it is has no new version and no entry', async () => {
    const token = await management.createToken({ name: 'same' });
    const { etag } = (await management.send('get', at(token)).expect(200)).headers;
    const { headers } = await management.send('patch', at(token), { name: 'same' }).expect(200);
    expect(headers.etag).toBe(etag);
    const { body } = await management.send('patch', at(token), {}).expect(400);
    expect(body.code).toBe('invalid_body');
  });

  it('has no new version either if a token limited to its tags changes it to what it is', async () => {
    const token = await management.createToken({ onlyTags: ['us', 'eu'] });
    const { etag } = (await management.send('get', at(token)).expect(200)).headers;
    const scopes = ['tokens:write', ...(await management.send('get', at(token))).body.scopes];
    const { secret } = await management.createToken({ scopes, onlyTags: ['eu'] });
    const { headers, body } = await management
      .sendAs(secret, 'patch', at(token), { onlyTags: ['us', 'eu'] })
      .expect(200);
    expect([headers.etag, body.onlyTags]).toEqual([etag, ['us', 'eu']]);
  });

  it('may be made and changed with null for what it is to have none of', async () => {
    const none = { onlyTags: null, allowedIps: null, expiresAt: null };
    const token = await management.createToken(none);
    await management.send('patch', at(token), { onlyTags: ['eu'] }).expect(200);
    const { body } = await management.send('patch', at(token), none).expect(200);
    expect(body).toMatchObject({ ...none, onlyTags: [] });
  });

  it('is rejected once it has expired', async () => {
    const expiresAt = new Date(management.clock.nowMs() + 60_000).toISOString();
    const token = await management.createToken({ expiresAt });
    expect(await isAccepted(token.secret)).toBe(true);
    management.clock.advance(60_000);
    expect(await isAccepted(token.secret)).toBe(false);
    await management.send('patch', at(token), { expiresAt: null }).expect(200);
    expect(await isAccepted(token.secret)).toBe(true);
  });

  it('is rejected from other addresses than its own', async () => {
    const elsewhere = await management.createToken({ allowedIps: ['203.0.113.0/24'] });
    const { body } = await management.sendAs(elsewhere.secret, 'get', '/tollgate/whoami').expect(403);
    expect(body.code).toBe('address_not_allowed');
    const here = await management.createToken({ allowedIps: ['127.0.0.1', '::1'] });
    expect(await isAccepted(here.secret)).toBe(true);
    expect(await outcomesOf(elsewhere)).toEqual(['address_not_allowed']);
  });

  it('adds one entry an hour to the audit log, however often it is used at a wrong address', async () => {
    const { secret, ...elsewhere } = await management.createToken({ allowedIps: ['203.0.113.0/24'] });
    const entriesAfter = async (path: string) => {
      await management.sendAs(secret, 'get', path).expect(403);
      return (await outcomesOf(elsewhere)).length;
    };
    expect(await entriesAfter('/rate-limit')).toBe(1);
    expect(await entriesAfter('/rate-limit')).toBe(1);
    expect(await entriesAfter('/consumer-api-key')).toBe(1);
    management.clock.advance(3_600_001);
    expect(await entriesAfter('/rate-limit')).toBe(2);
  });

  it('that lacks a scope adds an entry for each request, also after it was at a wrong address', async () => {
    const { secret, ...token } = await management.createToken({
      scopes: ['keys:read'],
      allowedIps: ['203.0.113.0/24'],
    });
    await management.sendAs(secret, 'get', '/rate-limit').expect(403);
    await management.send('patch', at(token), { allowedIps: null }).expect(200);
    await management.sendAs(secret, 'get', '/rate-limit').expect(403);
    await management.sendAs(secret, 'get', '/rate-limit').expect(403);
    expect(await outcomesOf(token)).toEqual(['address_not_allowed', 'missing_scope', 'missing_scope']);
  });

  it('notes when it was used, at most once a minute', async () => {
    const token = await management.createToken();
    const lastUsedAt = async () => (await management.send('get', at(token))).body.lastUsedAt;
    const usedAt = management.clock.nowMs();
    await isAccepted(token.secret);
    const first = await lastUsedAt();
    expect(Date.parse(first)).toBe(Math.floor(usedAt / 1000) * 1000);
    management.clock.advance(59_000);
    await isAccepted(token.secret);
    expect(await lastUsedAt()).toBe(first);
    management.clock.advance(1000);
    await isAccepted(token.secret);
    expect(Date.parse(await lastUsedAt())).toBe(Date.parse(first) + 60_000);
  });
});

describe('the rotation of an admin token', () => {
  const rotate = (token: { readonly adminTokenId: string }, graceSeconds: number) =>
    management.send('post', `${at(token)}/rotate`, { graceSeconds });

  it('leaves both secrets valid for the grace, and then only the new one', async () => {
    const token = await management.createToken();
    const { body } = await rotate(token, 60).expect(200);
    expect(body.secret).not.toBe(token.secret);
    const untilMs = Date.parse(body.previousValidUntil);
    expect(untilMs).toBe(Math.ceil((management.clock.nowMs() + 60_000) / 1000) * 1000);
    expect([await isAccepted(token.secret), await isAccepted(body.secret)]).toEqual([true, true]);
    const shown = (await management.send('get', at(token)).expect(200)).body;
    expect(shown.rotation).toEqual({ previousValidUntil: body.previousValidUntil });
    expect(shown.secretHint.slice(-4)).toBe(body.secret.slice(-4));
    management.clock.advance(untilMs - management.clock.nowMs() - 1);
    expect(await isAccepted(token.secret)).toBe(true);
    management.clock.advance(1);
    expect([await isAccepted(token.secret), await isAccepted(body.secret)]).toEqual([false, true]);
    expect((await management.send('get', at(token)).expect(200)).body.rotation).toBeNull();
    await rotate(token, 60).expect(200);
  });

  it('without grace ends all secrets that there were', async () => {
    const token = await management.createToken();
    const second = (await rotate(token, 600).expect(200)).body.secret;
    const { body } = await rotate(token, 600).expect(409);
    expect(body.code).toBe('rotation_in_progress');
    const third = (await rotate(token, 0).expect(200)).body;
    expect(third.previousValidUntil).toBeNull();
    const accepted = [token.secret, second, third.secret].map(isAccepted);
    expect(await Promise.all(accepted)).toEqual([false, false, true]);
  });

  it.each([
    {},
    { graceSeconds: -1 },
    { graceSeconds: 2_592_001 },
    { graceSeconds: 1.5 },
    { graceSeconds: '1' },
  ])('is rejected with %j', async (body) => {
    const token = await management.createToken();
    await management.send('post', `${at(token)}/rotate`, body).expect(400);
    expect(await isAccepted(token.secret)).toBe(true);
  });
});

describe('an admin token with few scopes', () => {
  it('gives no scope that it lacks, by making, changing or rotating a token', async () => {
    const minor = await management.createToken({ scopes: ['tokens:write', 'keys:read'] });
    const major = await management.createToken({ scopes: ['keys:read', 'keys:secret'] });
    const peer = await management.createToken({ scopes: ['keys:read'] });
    const as = (method: 'post' | 'patch' | 'delete', path: string, body?: object) =>
      management.sendAs(minor.secret, method, path, body);
    const create = { name: 'x', scopes: ['keys:secret'] };
    for (const request of [
      as('post', '/tollgate/admin-token/create', create),
      as('post', '/tollgate/admin-token/create', { name: 'x', scopes: ['support'] }),
      as('patch', at(peer), { scopes: ['keys:read', 'keys:secret'] }),
      as('patch', at(minor), { scopes: ['tokens:write', 'keys:read', 'keys:delete'] }),
      as('patch', at(major), { expiresAt: null, name: 'mine' }),
      as('patch', at(major), { scopes: ['keys:read'] }),
      as('post', `${at(major)}/rotate`, { graceSeconds: 0 }),
    ]) {
      const { body } = await request.expect(403);
      expect(body).toMatchObject({ code: 'missing_scope', requiredScope: expect.any(String) });
    }
    expect(await outcomesOf(minor)).toHaveLength(7);
    expect(await isAccepted(major.secret)).toBe(true);
    await as('post', '/tollgate/admin-token/create', { name: 'x', scopes: ['keys:read'] }).expect(201);
    await as('patch', at(peer), { name: 'renamed' }).expect(200);
    await as('delete', at(major)).expect(200);
    expect(await isAccepted(major.secret)).toBe(false);
  });
});

describe('an admin token that is limited to addresses and ends', () => {
  it('makes, changes and rotates tokens that are not, as SECURITY.md says', async () => {
    const expiresAt = new Date(management.clock.nowMs() + 60_000).toISOString();
    const scopes = ['tokens:write', 'keys:read'];
    const limited = await management.createToken({ scopes, expiresAt, allowedIps: ['127.0.0.1', '::1'] });
    const as = (method: 'post' | 'patch', path: string, body: object) =>
      management.sendAs(limited.secret, method, path, body);
    const fields = { name: 'free', scopes: ['keys:read'] };
    const made = (await as('post', '/tollgate/admin-token/create', fields).expect(201)).body;
    expect(made).toMatchObject({ allowedIps: null, expiresAt: null });
    const rotated = (await as('post', `${at(made)}/rotate`, { graceSeconds: 0 }).expect(200)).body;
    await as('patch', at(made), { name: 'still free' }).expect(200);
    management.clock.advance(60_000);
    expect([await isAccepted(limited.secret), await isAccepted(rotated.secret)]).toEqual([false, true]);
  });
});

describe('whoami', () => {
  it('shows the root token with all scopes, and what a console needs', async () => {
    const { body } = await management.send('get', '/tollgate/whoami').expect(200);
    expect(body).toMatchObject({ type: 'root', adminTokenId: null, name: 'root', onlyTags: [] });
    expect(body.scopes).toContain('tokens:write');
    expect(body).toMatchObject({
      version: gatewayVersion(),
      settings: { keyPrefix: 'tg', auditRetentionDays: 365, publicPort: null },
    });
  });
});

describe('the instant', () => {
  it('of every entry is that of the change', async () => {
    const first = await management.records.db
      .selectFrom('audit_log')
      .select(['at', 'action', 'request_id'])
      .orderBy('sequence')
      .executeTakeFirst();
    expect(first).toEqual({ at: new Date(START_MS), action: 'token.create', request_id: expect.any(String) });
  });
});
