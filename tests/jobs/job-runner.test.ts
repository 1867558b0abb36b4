import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { pino } from 'pino';
import {
  InvalidBody,
  KeyNotFound,
  PlanNotFound,
  StoreBusy,
  StoreUnavailable,
  type TollgateError,
} from '../../src/errors.ts';
import { JobRunner } from '../../src/jobs/job-runner.ts';
import type { JobStore } from '../../src/jobs/job-store.ts';
import type { ConsumerKey } from '../../src/keys/consumer-key.ts';
import type { UpdatedKey, UpdateFailure } from '../../src/keys/key-repository.ts';
import type { KeyService } from '../../src/keys/key-service.ts';
import { PRESETS } from '../../src/permissions/scopes.ts';
import { idMaker } from '../../src/platform/id-maker.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';
import type { RecordUnit } from '../../src/storage/postgres/record-units.ts';
import { startManagement, type TestManagement } from '../management/start-management.ts';
import { sampleChange } from '../support/sample-records.ts';
import { until } from '../support/until.ts';
import { waitingForLocks } from '../support/waiting-for-locks.ts';

const log = pino({ level: 'silent' });
/** A lease that has ended when it begins: every replica may take the job at once. */
const NO_LEASE_MS = -1000;

type Keys = Pick<KeyService, 'updateAll' | 'removeAll'>;

describe('A job', () => {
  let management: TestManagement;

  beforeAll(async () => {
    management = await startManagement();
  });

  afterAll(() => management.stop());

  /** Changes a key in the transaction of the job, as the service of keys does. */
  const keysIn = (unit: RecordUnit): Keys => ({
    async updateAll(keyIds, changes, change) {
      const updates = await unit.keys.updateAll(keyIds, changes, change);
      return new Map([...updates].map(([id, updated]) => [id, resultOf(updated)]));
    },
    removeAll: () => Promise.reject(new Error('not used')),
  });

  function resultOf(updated: UpdatedKey | UpdateFailure): ConsumerKey | TollgateError {
    if (updated === 'plan_not_found') return new PlanNotFound();
    if (updated === 'too_many_tags') return new InvalidBody([]);
    return typeof updated === 'string' ? new KeyNotFound() : updated.key;
  }

  /** A replica that works on jobs, with other parts where a test says so. */
  function replica(holder: string, parts: { keys?: (keys: Keys) => Keys; leaseMs?: number } = {}): JobRunner {
    const { keys = (usual) => usual, leaseMs } = parts;
    const withLease = (jobs: JobStore): JobStore =>
      new Proxy(jobs, {
        get(target, name) {
          if (name === 'take' && leaseMs !== undefined) return () => target.take(holder, leaseMs);
          if (name === 'advance' && leaseMs !== undefined)
            return (step: Parameters<JobStore['advance']>[0]) => target.advance(step, leaseMs);
          const member = Reflect.get(target, name, target);
          return typeof member === 'function' ? member.bind(target) : member;
        },
      });
    const { records, clock } = management;
    return new JobRunner({
      ...{ store: withLease(records.jobs), holder, log, clock },
      inUnit: (work) =>
        records.inUnit((unit) =>
          work({
            jobs: withLease(unit.jobs),
            tokens: unit.adminTokens,
            people: unit.sessions,
            attempt: (change) => unit.attempt(() => change(keys(keysIn(unit)))),
          }),
        ),
    });
  }

  async function createJob(count: number, secret?: string): Promise<{ jobId: string; ids: string[] }> {
    const ids: string[] = [];
    for (let made = 0; made < count; made += 1) ids.push((await management.createKey()).id);
    const body = { ids, action: 'disable' };
    const path = '/api-keys/bulk';
    const { body: job } = await (secret === undefined
      ? management.send('post', path, body)
      : management.sendAs(secret, 'post', path, body)
    ).expect(201);
    return { jobId: job.jobId, ids };
  }

  const show = async (jobId: string) => (await management.send('get', `/tollgate/job/${jobId}`)).body;
  const cancel = (jobId: string) => management.send('post', `/tollgate/job/${jobId}/cancel`).expect(200);

  /** The keys in the job's audit entries, in their order. */
  async function changedKeys(jobId: string): Promise<string[]> {
    const path = `/tollgate/audit-log?jobId=${jobId}&action=key.update`;
    const { body } = await management.send('get', path).expect(200);
    return body.entries.map(({ target }: { target: { id: string } }) => target.id).toReversed();
  }

  it('changes each key once, however many replicas work on it', async () => {
    const { jobId, ids } = await createJob(30);
    const replicas = ['a', 'b', 'c'].map((holder) => replica(holder, { leaseMs: NO_LEASE_MS }));
    await Promise.all(replicas.map((each) => each.run()));
    expect(await show(jobId)).toMatchObject({ state: 'done', done: 30, failedCount: 0 });
    expect(await changedKeys(jobId)).toEqual(ids);
  });

  it('is continued where a replica died in the middle of a key', async () => {
    const { jobId, ids } = await createJob(4);
    const dying = (keys: Keys): Keys => ({
      ...keys,
      async updateAll(keyIds, changes, change) {
        const updates = await keys.updateAll(keyIds, changes, change);
        if (keyIds.includes(ids[2] ?? '')) throw new StoreUnavailable('postgres', new Error('gone'));
        return updates;
      },
    });
    await expect(replica('dying', { keys: dying, leaseMs: NO_LEASE_MS }).run()).rejects.toThrow(
      StoreUnavailable,
    );
    expect(await show(jobId)).toMatchObject({ state: 'running', done: 2 });
    await replica('other').run();
    expect(await show(jobId)).toMatchObject({ state: 'done', done: 4 });
    expect(await changedKeys(jobId)).toEqual(ids);
  });

  /** Makes as many keys. Resolves with their ids. */
  async function importKeys(count: number): Promise<string[]> {
    const keys = Array.from({ length: count }, (_, number) => ({
      name: `key ${number}`,
      secret: createSecret('tg', systemRandom),
    }));
    const { body: imported } = await management.send('post', '/api-keys/import', { keys }).expect(200);
    return imported.results.map(({ consumerApiKeyId }: { consumerApiKeyId: string }) => consumerApiKeyId);
  }

  it('goes on with fewer keys at once where a statement for several takes too long', async () => {
    const ids = await importKeys(150);
    const { body: job } = await management
      .send('post', '/api-keys/bulk', { ids, action: 'add-tags', tags: ['of-a-slow-job'] })
      .expect(201);
    const slow = (usual: Keys): Keys => ({
      ...usual,
      updateAll(keyIds, changes, change) {
        if (keyIds.length > 1) throw new StoreBusy('postgres', new Error('statement timeout'));
        return usual.updateAll(keyIds, changes, change);
      },
    });
    await replica('slow', { keys: slow }).run();
    expect(await show(job.jobId)).toMatchObject({ state: 'done', done: 150, failedCount: 0 });
    expect((await changedKeys(job.jobId)).toSorted()).toEqual(ids.toSorted());
  });

  it('of many keys changes some at once, and each of them that can be changed', async () => {
    const ids = await importKeys(150);
    const [full = '', deleted = '', faulty = ''] = [ids[3], ids[60], ids[149]];
    const tags = Array.from({ length: 20 }, (_, number) => `tag-${number}`);
    await management.send('patch', `/consumer-api-key/${full}`, { tags }).expect(200);
    const body = { ids, action: 'add-tags', tags: ['of-a-job'] };
    const { body: job } = await management.send('post', '/api-keys/bulk', body).expect(201);
    await management.send('delete', `/consumer-api-key/${deleted}`).expect(200);
    const sizes: number[] = [];
    const failing = (usual: Keys): Keys => ({
      ...usual,
      async updateAll(keyIds, changes, change) {
        sizes.push(keyIds.length);
        const updates = await usual.updateAll(keyIds, changes, change);
        if (keyIds.includes(faulty)) throw new Error('the statement failed');
        return updates;
      },
    });
    await replica('a', { keys: failing }).run();
    const failed = [
      { consumerApiKeyId: full, code: 'invalid_body' },
      { consumerApiKeyId: deleted, code: 'key_not_found' },
      { consumerApiKeyId: faulty, code: 'internal_error' },
    ];
    expect(await show(job.jobId)).toMatchObject({ state: 'done', done: 150, failedCount: 3, failed });
    expect(sizes.toSorted((one, other) => other - one)[0]).toBe(2);
    const { body: tagged } = await management.send('get', '/consumer-api-key?tag=of-a-job&count=true');
    expect(tagged.total).toBe(147);
  });

  it('is left to the replica that has it until its lease ends', async () => {
    const { jobId } = await createJob(1);
    const { jobs, db } = management.records;
    expect(await jobs.take('first', 60_000)).toMatchObject({ id: jobId });
    expect(await jobs.take('second', 60_000)).toBeUndefined();
    await sql`UPDATE jobs SET held_until = now() - interval '1 s' WHERE id = ${jobId}`.execute(db);
    expect(await jobs.take('second', 60_000)).toMatchObject({ id: jobId });
    expect(await jobs.advance({ jobId, holder: 'first', position: 0, keys: 1 }, 60_000)).toBe(false);
    await jobs.release('second');
    await replica('third').run();
    expect(await show(jobId)).toMatchObject({ state: 'done' });
  });

  it('changes no key before it begins, once it is cancelled', async () => {
    const { jobId } = await createJob(2);
    expect((await cancel(jobId)).body).toMatchObject({ state: 'cancelled', done: 0 });
    await replica('a').run();
    expect(await changedKeys(jobId)).toEqual([]);
    // Again: it stays as it is.
    expect((await cancel(jobId)).body).toMatchObject({ state: 'cancelled', done: 0 });
  });

  it.each([0, 1, 2])('changes no key after it is cancelled at key %i', async (at) => {
    const { jobId, ids } = await createJob(3);
    let cancelled: Promise<unknown> | undefined;
    let doneAtResponse = -1;
    const cancelling = (keys: Keys): Keys => ({
      ...keys,
      async updateAll(keyIds, changes, change) {
        const updates = await keys.updateAll(keyIds, changes, change);
        // The response comes once this key is committed.
        if (keyIds.includes(ids[at] ?? ''))
          cancelled = cancel(jobId).then(async ({ body }) => {
            doneAtResponse = body.done;
          });
        return updates;
      },
    });
    await replica('a', { keys: cancelling }).run();
    await cancelled;
    const { state, done } = await show(jobId);
    expect(await changedKeys(jobId)).toEqual(ids.slice(0, done));
    expect(done).toBe(doneAtResponse);
    expect(done === 3 || state === 'cancelled').toBe(true);
  });

  it('stops when its admin token is deleted, has expired or lost the scope', async () => {
    const token = () => management.createToken({ scopes: PRESETS.provisioning });
    const path = (id: string) => `/tollgate/admin-token/${id}`;
    const endings = [
      (id: string) => management.send('delete', path(id)),
      (id: string) => management.send('patch', path(id), { scopes: ['keys:read'] }),
    ];
    for (const end of endings) {
      const { adminTokenId, secret } = await token();
      const { jobId } = await createJob(2, secret);
      await end(adminTokenId).expect(200);
      await replica('a').run();
      expect(await show(jobId)).toMatchObject({ state: 'stopped', done: 0 });
      expect(await changedKeys(jobId)).toEqual([]);
    }
  });

  describe('whose admin token changes while it changes a key', () => {
    /** Works on a job of two keys. The token changes while the first key's change waits for a lock. */
    async function changeDuringFirstKey(method: 'patch' | 'delete', body?: object) {
      const { adminTokenId, secret } = await management.createToken({ scopes: PRESETS.provisioning });
      const { jobId, ids } = await createJob(2, secret);
      await management.send('patch', `/consumer-api-key/${ids[1]}`, { tags: ['kept'] }).expect(200);
      const { db } = management.records;
      const { run } = await db.transaction().execute(async (transaction) => {
        await sql`SELECT FROM consumer_keys WHERE id = ${ids[0]} FOR UPDATE`.execute(transaction);
        const run = replica('a').run();
        await until(async () => (await waitingForLocks(db)) > 0);
        await management.send(method, `/tollgate/admin-token/${adminTokenId}`, body).expect(200);
        return { run };
      });
      await run;
      return { jobId, ids };
    }

    it.each([
      ['deleted', 'delete', undefined],
      ['without the scope', 'patch', { scopes: ['keys:read'] }],
    ] as const)('leaves that key as it is once the token is %s', async (_, method, body) => {
      const { jobId } = await changeDuringFirstKey(method, body);
      expect(await changedKeys(jobId)).toEqual([]);
      expect(await show(jobId)).toMatchObject({ state: 'stopped', done: 0, failedCount: 0 });
    });

    it('changes only keys with the tags to which the token is limited now', async () => {
      const { jobId, ids } = await changeDuringFirstKey('patch', { onlyTags: ['kept'] });
      expect(await changedKeys(jobId)).toEqual([ids[1]]);
      const failed = [{ consumerApiKeyId: ids[0], code: 'key_not_found' }];
      expect(await show(jobId)).toMatchObject({ state: 'done', done: 2, failedCount: 1, failed });
    });

    it('changes all of them if the token has only another name', async () => {
      const { jobId, ids } = await changeDuringFirstKey('patch', { name: 'renamed' });
      expect(await changedKeys(jobId)).toEqual(ids);
      expect(await show(jobId)).toMatchObject({ state: 'done', done: 2, failedCount: 0 });
    });
  });

  it('stops at the instant at which the access token of the program that made it ends', async () => {
    const { db, jobs } = management.records;
    const { clock } = management;
    for (const [leftMs, state] of [
      [0, 'stopped'],
      [60_000, 'done'],
    ] as const) {
      const { jobId } = await createJob(1);
      const allowedUntil = new Date(clock.nowMs() + leftMs);
      await sql`UPDATE jobs SET allowed_until = ${allowedUntil} WHERE id = ${jobId}`.execute(db);
      expect(await jobs.find(jobId)).toMatchObject({ allowedUntilMs: allowedUntil.getTime() });
      await replica('a').run();
      expect(await show(jobId)).toMatchObject({ state });
    }
  });

  it('reaches only the keys that its admin token still sees', async () => {
    const { adminTokenId, secret } = await management.createToken({ scopes: PRESETS.provisioning });
    const { jobId, ids } = await createJob(2, secret);
    await management.send('patch', `/consumer-api-key/${ids[1]}`, { tags: ['kept'] }).expect(200);
    await management
      .send('patch', `/tollgate/admin-token/${adminTokenId}`, { onlyTags: ['kept'] })
      .expect(200);
    await replica('a').run();
    expect(await show(jobId)).toMatchObject({ state: 'done', failedCount: 1 });
    expect(await changedKeys(jobId)).toEqual([ids[1]]);
  });

  it('takes turns with another one on the same keys', async () => {
    const { jobId, ids } = await createJob(3);
    const { body: second } = await management.send('post', '/api-keys/bulk', { ids, action: 'enable' });
    await Promise.all([replica('a').run(), replica('b').run()]);
    await replica('c').run();
    expect(await changedKeys(jobId)).toEqual(ids);
    expect(await show(second.jobId)).toMatchObject({ state: 'done', done: 3, failedCount: 0 });
  });

  it('ends at once without keys', async () => {
    const body = { filter: { tag: 'no-such-tag' }, action: 'delete' };
    const { body: job } = await management.send('post', '/api-keys/bulk', body).expect(201);
    expect(job).toMatchObject({ state: 'done', total: 0 });
    expect(await show(job.jobId)).toEqual(job);
  });

  it('lists its keys as failed where its plan is deleted meanwhile', async () => {
    const { rateLimitId } = await management.createPlan();
    const { id } = await management.createKey();
    const body = { ids: [id], action: 'set-plan', rateLimitId };
    const { body: job } = await management.send('post', '/api-keys/bulk', body).expect(201);
    await management.send('delete', `/rate-limit/${rateLimitId}`).expect(200);
    await replica('a').run();
    const failed = [{ consumerApiKeyId: id, code: 'plan_not_found' }];
    expect(await show(job.jobId)).toMatchObject({ state: 'done', failedCount: 1, failed });
  });

  it('is not made beyond the number that may run, also where several are made at once', async () => {
    const { jobs, db } = management.records;
    const running = db.selectFrom('jobs').select('id').where('state', '=', 'running');
    const mostRunning = (await running.execute()).length + 1;
    const makeId = idMaker('job_', management.clock, systemRandom);
    const make = () => {
      const id = makeId();
      const job = { id, action: 'delete', changes: null, allowedUntilMs: null } as const;
      return jobs.insert({ ...job, change: sampleChange({ jobId: id }) }, ['key'], mostRunning);
    };
    // None can be committed before all of them wait.
    const { making } = await db.transaction().execute(async (transaction) => {
      await sql`SELECT FROM audit_log_ends FOR UPDATE`.execute(transaction);
      const making = Promise.all([make(), make(), make()]);
      await until(async () => (await waitingForLocks(db)) >= 3);
      return { making };
    });
    expect((await making).toSorted()).toEqual([false, false, true]);
    expect(await running.execute()).toHaveLength(mostRunning);
    for (const { id } of await running.execute()) await cancel(id);
  });

  it('is removed with its keys some time after its end', async () => {
    const { jobId: earlierId } = await createJob(1);
    const { jobId } = await createJob(1);
    const { jobId: runningId } = await createJob(1);
    await cancel(earlierId);
    const { body } = await cancel(jobId);
    const { jobs } = management.records;
    const endedAtMs = Date.parse(body.endedAt);
    await jobs.trim(endedAtMs - 1000, 0);
    expect(await jobs.find(jobId)).toBeDefined();
    const left: number[] = [];
    for (const goesOn of [false, true]) {
      await jobs.trim(endedAtMs + 1000, 0, () => goesOn);
      const found = await Promise.all([jobs.find(earlierId), jobs.find(jobId)]);
      left.push(found.filter((job) => job !== undefined).length);
    }
    expect(left[0]).toBeGreaterThan(0);
    expect([await jobs.find(earlierId), await jobs.find(jobId)]).toEqual([undefined, undefined]);
    expect(await jobs.keysFrom(jobId, 0, 1)).toEqual([]);
    expect(await jobs.find(runningId)).toBeDefined();
    await cancel(runningId);
  });
});
