import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import { startManagement, type TestManagement } from './start-management.ts';

const UNKNOWN = 'key_01KGH3V6ZQ5T8M2N4P6R8S0T2V';
const RUNNING = 'running';

describe('Changes of many keys', () => {
  let management: TestManagement;

  beforeAll(async () => {
    management = await startManagement();
    management.startJobs();
  });

  afterAll(() => management.stop());

  const send = (body: object) => management.send('post', '/api-keys/bulk', body);

  /** Keys with a tag of their own. */
  async function keysWithTag(tag: string, count: number, fields: object = {}): Promise<readonly string[]> {
    const ids: string[] = [];
    for (let made = 0; made < count; made += 1) {
      const body = { name: `${tag} ${made}`, tags: [tag], ...fields };
      ids.push((await management.send('post', '/consumer-api-key/create', body).expect(201)).body.id);
    }
    return ids;
  }

  async function ended(jobId: string) {
    const show = async () => (await management.send('get', `/tollgate/job/${jobId}`).expect(200)).body;
    await until(async () => (await show()).state !== RUNNING);
    return show();
  }

  /** Makes a job and waits for its end. */
  async function done(body: object) {
    const { body: job } = await send(body).expect(201);
    return ended(job.jobId);
  }

  const item = async (id: string) =>
    (await management.send('get', `/consumer-api-key?q=${id}`).expect(200)).body.apiKeys[0];

  async function entriesOf(jobId: string) {
    const { body } = await management.send('get', `/tollgate/audit-log?jobId=${jobId}`).expect(200);
    return body.entries.filter(({ action }: { action: string }) => action !== 'job.create');
  }

  it('changes each key with its audit entry of one job', async () => {
    const ids = await keysWithTag('entries', 5);
    const { body, headers } = await management
      .send('post', '/api-keys/bulk', { filter: { tag: 'entries' }, action: 'disable', expectCount: 5 })
      .set('X-Audit-Reason', 'an incident')
      .expect(201);
    expect(headers.location).toBe(`/tollgate/job/${body.jobId}`);
    expect(body).toMatchObject({ state: RUNNING, done: 0, total: 5, failed: [], reason: 'an incident' });
    expect(await ended(body.jobId)).toMatchObject({ state: 'done', done: 5, failedCount: 0, failed: [] });
    const entries = await entriesOf(body.jobId);
    expect(entries.map(({ target }: { target: { id: string } }) => target.id).toSorted()).toEqual(ids);
    for (const entry of entries)
      expect(entry).toMatchObject({
        action: 'key.update',
        changes: { enabled: { from: true, to: false } },
        reason: 'an incident',
        jobId: body.jobId,
      });
    const { body: verified } = await management.send('get', '/tollgate/audit-log/verify').expect(200);
    expect(verified.valid).toBe(true);
  });

  it.each([
    ['enable', { enabled: false }, {}, { enabled: true }],
    ['add-tags', {}, { tags: ['added'] }, { tags: ['each', 'added'] }],
    ['remove-tags', { tags: ['each', 'old'] }, { tags: ['old'] }, { tags: ['each'] }],
    ['set-plan', { rateLimitId: null }, { rateLimitId: 'bulk' }, { rateLimitId: 'bulk' }],
    ['set-plan', { rateLimitId: 'bulk' }, { rateLimitId: null }, { rateLimitId: null }],
    ['set-expiry', {}, { expiresAt: '2030-01-01T00:00:00Z' }, { expiresAt: '2030-01-01T00:00:00Z' }],
    [
      'clear-override',
      { overrides: { main: { limit: 7 }, burst: { limit: 1 } } },
      { limitId: 'burst' },
      { overrides: { main: { limit: 7 } } },
    ],
    ['clear-override', { overrides: { main: { limit: 7 }, burst: { limit: 1 } } }, {}, { overrides: {} }],
  ])('does %s to a key with %j', async (action, before, fields, after) => {
    await management
      .send('put', '/rate-limit/bulk', { limit: 10, period: 'hour' })
      .expect(({ status }) => expect([200, 201]).toContain(status));
    const ids = await keysWithTag('each', 1, before);
    const job = await done({ ids, action, ...fields });
    expect(job).toMatchObject({ state: 'done', total: 1, failed: [] });
    expect(await item(ids[0] ?? '')).toMatchObject(after);
  });

  it('deletes keys', async () => {
    const ids = await keysWithTag('deleted', 3);
    expect(await done({ filter: { tag: ['deleted'] }, action: 'delete' })).toMatchObject({ done: 3 });
    for (const id of ids) await management.send('get', `/consumer-api-key/${id}`).expect(404);
  });

  it('takes each id once, and lists unknown keys as failed', async () => {
    const [id = ''] = await keysWithTag('twice', 1);
    const job = await done({ ids: [id, UNKNOWN, id, UNKNOWN], action: 'disable' });
    expect(job).toMatchObject({
      ...{ state: 'done', total: 2, done: 2, failedCount: 1 },
      failed: [{ consumerApiKeyId: UNKNOWN, code: 'key_not_found' }],
    });
    expect(await entriesOf(job.jobId)).toHaveLength(1);
  });

  it('lists keys that would have too many tags as failed', async () => {
    const tags = Array.from({ length: 20 }, (_, index) => `t${index}`);
    const [full = ''] = await keysWithTag('full', 1, { tags });
    const job = await done({ ids: [full], action: 'add-tags', tags: ['one-more'] });
    expect(job.failed).toEqual([{ consumerApiKeyId: full, code: 'invalid_body' }]);
    expect(await item(full)).toMatchObject({ tags });
  });

  it('changes nothing in a dry run, or where another number is expected', async () => {
    const [id = ''] = await keysWithTag('dry', 1);
    const dry = await send({ ids: [id, UNKNOWN], action: 'disable', dryRun: true }).expect(200);
    expect(dry.body).toEqual({ dryRun: true, action: 'disable', total: 2, notFound: 1 });
    for (const dryRun of [true, false]) {
      const { body } = await send({
        filter: { tag: 'dry' },
        action: 'delete',
        dryRun,
        expectCount: 2,
      }).expect(409);
      expect(body).toMatchObject({ code: 'count_mismatch', count: 1 });
    }
    expect(await item(id)).toMatchObject({ enabled: true });
  });

  it.each([
    [{ action: 'enable' }, 'filter'],
    [{ action: 'enable', filter: {}, ids: [UNKNOWN] }, 'filter'],
    [{ action: 'enable', filter: {} }, 'expectCount'],
    [{ action: 'delete', filter: { tag: [] } }, 'filter.tag'],
    [{ action: 'enable', filter: { q: '\u0000' } }, 'filter.q'],
    [{ action: 'enable', filter: { status: 'gone' } }, 'filter.status'],
    [{ action: 'enable', filter: { unusedSince: 'yesterday' } }, 'filter.unusedSince'],
    [{ action: 'enable', filter: { nmae: 'x' } }, 'filter.nmae'],
    [{ action: 'enable', ids: ['key_1'] }, 'ids[0]'],
    [{ action: 'enable', ids: [UNKNOWN], tags: ['x'] }, 'tags'],
    [{ action: 'add-tags', ids: [UNKNOWN] }, 'tags'],
    [{ action: 'set-plan', ids: [UNKNOWN] }, 'rateLimitId'],
    [{ action: 'set-expiry', ids: [UNKNOWN] }, 'expiresAt'],
    [{ action: 'set-expiry', ids: [UNKNOWN], expiresAt: '2020-01-01T00:00:00Z' }, 'expiresAt'],
    [{ action: 'rotate', ids: [UNKNOWN] }, 'action'],
  ])('rejects %j', async (body, field) => {
    const { body: rejection } = await send(body).expect(400);
    expect(rejection.errors.map((fault: { field: string }) => fault.field)).toEqual([field]);
  });

  it('says of a field of the filter what it must be, and not of a query parameter', async () => {
    const { body } = await send({ action: 'enable', filter: { createdAfter: 'x' } }).expect(400);
    expect(body.errors).toEqual([
      { field: 'filter.createdAfter', message: expect.stringMatching(/^must be an instant/) },
    ]);
  });

  it('rejects a plan that does not exist', async () => {
    await send({ action: 'set-plan', ids: [UNKNOWN], rateLimitId: 'never-made' }).expect(404);
  });

  it('performs a request with an Idempotency-Key once', async () => {
    await keysWithTag('once', 2);
    const body = { filter: { tag: 'once' }, action: 'disable' };
    const [first, second] = [
      await send(body).set('Idempotency-Key', 'bulk-once').expect(201),
      await send(body).set('Idempotency-Key', 'bulk-once').expect(201),
    ];
    expect(second.body.jobId).toBe(first.body.jobId);
    expect(await ended(first.body.jobId)).toMatchObject({ done: 2 });
  });

  it('needs the scope of the action', async () => {
    const reader = await management.createToken({ scopes: ['keys:read'] });
    const writer = await management.createToken({ scopes: ['keys:read', 'keys:write'] });
    const [id = ''] = await keysWithTag('scopes', 1);
    const as = (token: { secret: string }, action: string) =>
      management.sendAs(token.secret, 'post', '/api-keys/bulk', { ids: [id], action, dryRun: true });
    expect((await as(reader, 'enable').expect(403)).body.requiredScope).toBe('keys:write');
    expect((await as(writer, 'delete').expect(403)).body.requiredScope).toBe('keys:delete');
    await as(writer, 'enable').expect(200);
    await management.bare('post', '/api-keys/bulk').send({}).expect(401);
  });

  it('reaches only keys with the tags of its token, and is seen only by those who see these', async () => {
    const scopes = ['keys:read', 'keys:write'];
    const [mine = ''] = await keysWithTag('mine', 1);
    const [theirs = ''] = await keysWithTag('theirs', 1);
    const token = await management.createToken({ scopes, onlyTags: ['mine'] });
    const other = await management.createToken({ scopes, onlyTags: ['theirs'] });
    const bulk = (body: object) => management.sendAs(token.secret, 'post', '/api-keys/bulk', body);
    const everything = await bulk({ filter: {}, action: 'disable', dryRun: true }).expect(200);
    expect(everything.body.total).toBe(1);
    const outOfSight = await bulk({ ids: [mine], action: 'remove-tags', tags: ['mine'] }).expect(400);
    expect(outOfSight.body.errors).toEqual([expect.objectContaining({ field: 'tags' })]);
    const { body } = await bulk({ ids: [mine, theirs], action: 'disable' }).expect(201);
    const job = await ended(body.jobId);
    expect(job.failed).toEqual([{ consumerApiKeyId: theirs, code: 'key_not_found' }]);
    expect(await item(theirs)).toMatchObject({ enabled: true });
    const path = `/tollgate/job/${body.jobId}`;
    await management.sendAs(token.secret, 'get', path).expect(200);
    await management.sendAs(other.secret, 'get', path).expect(404);
    await management.sendAs(other.secret, 'post', `${path}/cancel`).expect(404);
    const { body: list } = await management
      .sendAs(other.secret, 'get', '/tollgate/job?count=true')
      .expect(200);
    expect(list).toEqual({ jobs: [], total: 0 });
  });

  it('lists jobs page by page, newest first', async () => {
    const { body: first } = await management.send('get', '/tollgate/job?limit=1&count=true').expect(200);
    expect(first.total).toBeGreaterThan(1);
    const { body: second } = await management
      .send('get', `/tollgate/job?limit=1&cursor=${first.nextCursor}`)
      .expect(200);
    expect(second.jobs[0].jobId < first.jobs[0].jobId).toBe(true);
    const cursor = Buffer.from('["x"]').toString('base64url');
    await management.send('get', `/tollgate/job?cursor=${cursor}`).expect(400);
    await management.send('get', '/tollgate/job/job_1').expect(404);
    await management.send('post', '/tollgate/job/job_1/cancel').expect(404);
  });
});
