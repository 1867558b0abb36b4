import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DOCUMENTED_ENDPOINTS } from '../../src/management/endpoints.ts';
import { openApiDocument } from '../../src/management/openapi/document.ts';
import { startManagement, type TestManagement } from './start-management.ts';

const document = JSON.parse(JSON.stringify(openApiDocument(DOCUMENTED_ENDPOINTS)));

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

const read = async (query = '') =>
  (await management.send('get', `/tollgate/audit-log${query}`).expect(200)).body;

describe('the audit log', () => {
  it('shows who changed what and why, newest first', async () => {
    const { id } = await management.createKey('audited');
    const path = `/consumer-api-key/${id}`;
    const { headers } = await management
      .send('patch', path, { enabled: false })
      .set({ 'X-Audit-Reason': 'ticket 7', 'X-Request-Id': 'my-request' })
      .expect(200);
    expect(headers['x-request-id']).toBe('my-request');
    const { entries } = await read(`?targetId=${id}`);
    expect(entries).toEqual([
      {
        auditId: expect.stringMatching(/^aud_\d{16}$/),
        at: '2026-02-03T04:05:06Z',
        action: 'key.update',
        actor: { type: 'root', adminTokenId: null, name: 'root' },
        target: { type: 'key', id, name: 'audited' },
        changes: { enabled: { from: true, to: false } },
        reason: 'ticket 7',
        requestId: 'my-request',
        address: expect.stringMatching(/^(127\.0\.0\.1|::1)$/),
        outcome: 'success',
        jobId: null,
      },
      expect.objectContaining({ action: 'key.create', reason: null }),
    ]);
  });

  it('has an entry of each change of plans and tokens, with the token that made it', async () => {
    const writer = await management.createToken({ name: 'writer', scopes: ['plans:write', 'plans:read'] });
    const plan = { rateLimitId: 'audited', description: '', limit: 5, period: 'hour' };
    await management.sendAs(writer.secret, 'post', '/rate-limit/create', plan).expect(201);
    await management.sendAs(writer.secret, 'put', '/rate-limit/audited', { limit: 6, period: 'hour' });
    await management.sendAs(writer.secret, 'patch', '/rate-limit/audited', { limit: 7 }).expect(200);
    await management.sendAs(writer.secret, 'delete', '/rate-limit/audited').expect(200);
    const { entries } = await read(`?actorId=${writer.adminTokenId}`);
    const actor = { type: 'token', adminTokenId: writer.adminTokenId, name: 'writer' };
    expect(entries).toMatchObject([
      { actor, action: 'plan.delete', changes: { limit: { from: 7, to: null } } },
      { actor, action: 'plan.update', changes: { limit: { from: 6, to: 7 } } },
      { actor, action: 'plan.update', changes: { limit: { from: 5, to: 6 } } },
      { actor, action: 'plan.create', target: { type: 'plan', id: 'audited', name: null } },
    ]);
    const path = `/tollgate/admin-token/${writer.adminTokenId}`;
    await management.send('patch', path, { scopes: ['plans:read'] }).expect(200);
    const { body } = await management.send('post', `${path}/rotate`, { graceSeconds: 60 }).expect(200);
    await management.send('delete', path).expect(200);
    const ofToken = await read(`?targetId=${writer.adminTokenId}`);
    expect(ofToken.entries).toMatchObject([
      { action: 'token.delete' },
      {
        action: 'token.rotate',
        changes: { previousValidUntil: { from: null, to: expect.stringMatching(/:\d\dZ$/) } },
      },
      { action: 'token.update', changes: { scopes: { to: ['plans:read'] } } },
      { action: 'token.create', target: { type: 'token', name: 'writer' } },
    ]);
    expect(JSON.stringify([entries, ofToken])).not.toContain(body.secret);
  });

  it('has no entry of what was rejected or changed nothing, but of 403', async () => {
    const before = (await read()).entries.length;
    const { id } = await management.createKey('same');
    await management.send('patch', `/consumer-api-key/${id}`, { name: 'same' }).expect(200);
    await management.send('patch', `/consumer-api-key/${id}`, { name: '' }).expect(400);
    await management.send('post', '/rate-limit/create', { rateLimitId: 'x' }).expect(400);
    await management.send('delete', '/rate-limit/none').expect(404);
    await management.send('get', '/rate-limit').expect(200);
    await management.bare('delete', `/consumer-api-key/${id}`).expect(401);
    expect((await read()).entries.length).toBe(before + 1);
  });

  it('comes in pages that belong to their query', async () => {
    const all = (await read()).entries;
    const first = await read('?limit=2');
    const second = await read(`?limit=1000&cursor=${first.nextCursor}`);
    expect([...first.entries, ...second.entries]).toEqual(all);
    expect(second).not.toHaveProperty('nextCursor');
    expect(second).not.toHaveProperty('total');
    const counted = await read(`?limit=1&count=true&cursor=${(await read('?limit=1')).nextCursor}`);
    expect(counted.total).toBe(all.length);
    const made = all.filter(({ action }: { action: string }) => action === 'key.create').length;
    expect((await read('?action=key.create&limit=1&count=true')).total).toBe(made);
    for (const query of [`action=key.create&cursor=${first.nextCursor}`, 'cursor=eHg', 'cursor=']) {
      const { body } = await management.send('get', `/tollgate/audit-log?${query}`).expect(400);
      expect(body.code).toBe('invalid_cursor');
    }
  });

  it('is narrowed to a span of instants, or of days in UTC', async () => {
    const all = (await read('?limit=1000')).entries;
    expect((await read('?limit=1000&from=2026-02-03&to=2026-02-04')).entries).toEqual(all);
    expect((await read('?to=2026-02-03')).entries).toEqual([]);
    expect((await read('?limit=1000&to=2026-02-03T04:05:07Z')).entries).toEqual(all);
    expect((await read('?to=2026-02-03T04:05:06Z')).entries).toEqual([]);
  });

  it('is narrowed to a configuration by the name of its owner', async () => {
    const owner = 'team/eu:prod@shop';
    const config = { plans: [{ rateLimitId: 'configured', limit: 1, period: 'hour' }] };
    await management.send('post', '/tollgate/config/apply', { owner, config }).expect(200);
    const { entries } = await read(`?targetId=${encodeURIComponent(owner)}`);
    expect(entries).toMatchObject([{ action: 'config.apply', target: { type: 'configuration', id: owner } }]);
  });

  it('comes as CSV with all entries, which no spreadsheet runs as formulas', async () => {
    await management.createKey('=1+1');
    const { entries } = await read();
    const { text, headers } = await management
      .send('get', '/tollgate/audit-log')
      .set('Accept', 'text/csv')
      .expect(200);
    expect(headers['content-type']).toContain('text/csv');
    const lines = text.trim().split('\r\n');
    expect(lines).toHaveLength(entries.length + 1);
    expect(lines[0]).toBe(
      'auditId,at,action,actorType,adminTokenId,actorName,targetType,targetId,targetName,changes,reason,requestId,address,outcome,actorSubject,actorEmail,jobId',
    );
    expect(lines[1]).toContain(`,'=1+1,`);
    const filtered = await management.send('get', '/tollgate/audit-log?format=csv&action=token.create');
    expect(filtered.text.split('\r\n')[1]).toContain(',token.create,root,');
    await management.send('get', '/tollgate/audit-log?format=csv&limit=5').expect(400);
  });

  it('has in a CSV file a column for each field of an entry', async () => {
    const { AuditEntry, AuditActor, AuditTarget } = document.components.schemas;
    const { actor, target, ...fields } = AuditEntry.properties;
    const columnsOf = (part: string, { properties }: { readonly properties: object }) =>
      Object.keys(properties).map((name) =>
        name === 'adminTokenId' ? name : `${part}${name.charAt(0).toUpperCase()}${name.slice(1)}`,
      );
    const columns = [
      ...Object.keys(fields),
      ...columnsOf('actor', AuditActor),
      ...columnsOf('target', AuditTarget),
    ];
    const { text } = await management.send('get', '/tollgate/audit-log?format=csv').expect(200);
    expect(text.split('\r\n')[0]?.split(',').toSorted()).toEqual(columns.toSorted());
  });

  it('ties in a CSV file an entry to its job', async () => {
    const { id } = await management.createKey();
    const bulk = { ids: [id], action: 'disable' };
    const { jobId } = (await management.send('post', '/api-keys/bulk', bulk).expect(201)).body;
    const { text } = await management
      .send('get', `/tollgate/audit-log?format=csv&jobId=${jobId}`)
      .expect(200);
    const [, row] = text.split('\r\n');
    expect(row).toMatch(new RegExp(`,job\\.create,.*,${jobId}$`));
  });

  it.each([
    'from=yesterday',
    'to=2026-02-30T00:00:00Z',
    'to=2026-02-30',
    'action=key.destroy',
    'action=key.create&action=key.update',
    'actorId=%00',
    'targetId=a%20b',
    'format=xml',
    'limit=0',
  ])('rejects the query %s', async (query) => {
    const { body } = await management.send('get', `/tollgate/audit-log?${query}`).expect(400);
    expect(body.code).toBe('invalid_parameter');
  });

  it('verifies, and names the first entry that was changed', async () => {
    const { body } = await management.send('get', '/tollgate/audit-log/verify').expect(200);
    const { entries, lastHash } = body;
    const [newest] = (await read('?limit=1')).entries;
    expect(body).toEqual({
      valid: true,
      ...{ entries, count: entries, lastAt: newest.at },
      lastHash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(management.lines.at(-1)).toContain(`"hash":"${lastHash}"`);
    const expecting = (count: number, hash: string) =>
      management
        .send('get', `/tollgate/audit-log/verify?expectCount=${count}&expectHash=${hash}`)
        .expect(200);
    await management.createKey('after the head was noted');
    expect((await expecting(entries, lastHash)).body).toMatchObject({
      valid: true,
      count: entries + 1,
      expectation: 'met',
    });
    const zeros = '0'.repeat(64);
    expect((await expecting(0, zeros)).body).toMatchObject({ valid: true, expectation: 'met' });
    expect((await expecting(entries, zeros)).body).toMatchObject({ valid: false, expectation: 'other_hash' });
    expect((await expecting(9999, zeros)).body).toMatchObject({ valid: false, expectation: 'cut_off' });
    await management.records.db
      .updateTable('audit_log')
      .set({ address: '192.0.2.1' })
      .where('sequence', '=', 2)
      .execute();
    const tampered = await management.send('get', '/tollgate/audit-log/verify').expect(200);
    expect(tampered.body).toMatchObject({
      ...{ valid: false, problem: 'changed', entries: 1, lastAt: null },
      firstBroken: 'aud_0000000000000002',
    });
    expect((await expecting(1, lastHash)).body).not.toHaveProperty('expectation');
  });

  it.each([
    'expectCount=1',
    `expectHash=${'0'.repeat(64)}`,
    `expectCount=-1&expectHash=${'0'.repeat(64)}`,
    `expectCount=1.5&expectHash=${'0'.repeat(64)}`,
    `expectCount=9007199254740992&expectHash=${'0'.repeat(64)}`,
    'expectCount=1&expectHash=abc',
    `expectCount=1&expectHash=${'A'.repeat(64)}`,
    `expectCount=1&expectCount=1&expectHash=${'0'.repeat(64)}`,
  ])('rejects the expectation %s', async (query) => {
    const { body } = await management.send('get', `/tollgate/audit-log/verify?${query}`).expect(400);
    expect(body.code).toBe('invalid_parameter');
  });

  it('takes a reason in UTF-8', async () => {
    const { id } = await management.createKey();
    // Node writes each character of a header as one byte.
    const bytes = Buffer.from('Störung behoben').toString('latin1');
    await management.send('delete', `/consumer-api-key/${id}`).set('X-Audit-Reason', bytes).expect(200);
    expect((await read('?limit=1')).entries[0].reason).toBe('Störung behoben');
  });

  it('takes a reason of at most 256 characters', async () => {
    const rename = (reason: string) =>
      management.send('post', '/consumer-api-key/create', { name: 'x' }).set('X-Audit-Reason', reason);
    await rename('r'.repeat(256)).expect(201);
    const { body } = await rename('r'.repeat(257)).expect(400);
    expect(body.code).toBe('bad_request');
    expect((await read('?limit=1')).entries[0].reason).toBe('r'.repeat(256));
  });
});
