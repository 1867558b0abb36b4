import { type Insertable, type Selectable, sql } from 'kysely';
import { changedFields } from '../../../audit/audit-entry.ts';
import type { ChangeContext } from '../../../audit/change-context.ts';
import type { ErrorCode } from '../../../errors.ts';
import { type Job, type JobFailure, jobTarget } from '../../../jobs/job.ts';
import type { JobPage, JobStep, JobStore, NewJob } from '../../../jobs/job-store.ts';
import { withoutSecrets } from '../../../keys/secrets/secret-redactor.ts';
import { ADVISORY_LOCKS } from '../advisory-locks.ts';
import { actorColumns, actorOfRow } from '../audit/audit-log-tables.ts';
import type { AuditedChanges } from '../audit/audited-changes.ts';
import { countRows } from '../count-rows.ts';
import { deleteInParts } from '../delete-in-parts.ts';
import { earlierNowMs } from '../earlier-now.ts';
import { isLimitedTo } from '../limited-rows.ts';
import type { RecordsDatabase } from '../records-database.ts';
import type { JobsTable } from './jobs-tables.ts';

/** Jobs in Postgres. */
export class PostgresJobStore implements JobStore {
  readonly #db: RecordsDatabase;
  readonly #changes: AuditedChanges;

  constructor(db: RecordsDatabase, changes: AuditedChanges) {
    this.#db = db;
    this.#changes = changes;
  }

  insert(job: NewJob, keyIds: readonly string[], mostRunning: number): Promise<boolean> {
    return this.#changes.make(job.change, async (trx, note) => {
      // Otherwise each of several requests would count the jobs before the others are committed.
      await sql`SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.jobs})`.execute(trx);
      const running = await countRows(trx.selectFrom('jobs').where('state', '=', 'running'));
      if (running >= mostRunning) return false;
      await trx.insertInto('jobs').values(rowOfJob(job, keyIds.length)).execute();
      await sql`
        INSERT INTO job_keys (job_id, position, key_id)
        SELECT ${job.id}, place - 1, key_id
        FROM unnest(${keyIds}::text[]) WITH ORDINALITY AS chosen (key_id, place)`.execute(trx);
      const made = { action: job.action, changes: job.changes, keys: keyIds.length };
      note({ action: 'job.create', target: jobTarget(job), changes: changedFields(null, made) });
      return true;
    });
  }

  async find(jobId: string): Promise<Job | undefined> {
    const row = await this.#db.selectFrom('jobs').selectAll().where('id', '=', jobId).executeTakeFirst();
    return row && jobOfRow(row);
  }

  async failures(jobId: string, limit: number): Promise<readonly JobFailure[]> {
    const rows = await this.#db
      .selectFrom('job_keys')
      .select(['key_id', 'code'])
      .where('job_id', '=', jobId)
      .where('code', 'is not', null)
      .orderBy('position')
      .limit(limit)
      .execute();
    // A later version may have written a code that this one does not know.
    return rows.map(({ key_id: keyId, code }) => ({ keyId, code: code as ErrorCode }));
  }

  async list({ onlyTags, limit, beforeId }: JobPage): Promise<readonly Job[]> {
    let page = this.#db.selectFrom('jobs').selectAll().where(isLimitedTo(onlyTags));
    if (beforeId !== undefined) page = page.where('id', '<', beforeId);
    return (await page.orderBy('id', 'desc').limit(limit).execute()).map(jobOfRow);
  }

  count(onlyTags: readonly string[]): Promise<number> {
    return countRows(this.#db.selectFrom('jobs').where(isLimitedTo(onlyTags)));
  }

  cancel(jobId: string, change: ChangeContext): Promise<Job | undefined> {
    return this.#changes.make(change, async (trx, note) => {
      const row = await trx
        .selectFrom('jobs')
        .selectAll()
        .where('id', '=', jobId)
        .forUpdate()
        .executeTakeFirst();
      if (row === undefined) return undefined;
      const job = jobOfRow(row);
      if (job.state !== 'running') return job;
      await trx
        .updateTable('jobs')
        .set({ ...ended('cancelled'), ended_at: new Date(change.atMs) })
        .where('id', '=', jobId)
        .execute();
      note({
        action: 'job.cancel',
        target: jobTarget(job),
        changes: { state: { from: 'running', to: 'cancelled' }, done: { from: null, to: job.done } },
      });
      return { ...job, state: 'cancelled', endedAtMs: change.atMs };
    });
  }

  async take(holder: string, leaseMs: number): Promise<Job | undefined> {
    const row = await this.#db
      .updateTable('jobs')
      .set({ holder, held_until: leaseOf(leaseMs) })
      .where('id', '=', (select) =>
        select
          .selectFrom('jobs')
          .select('id')
          .where('state', '=', 'running')
          .where(sql<boolean>`coalesce(holder = ${holder} OR held_until < clock_timestamp(), true)`)
          .orderBy(sql`held_until NULLS FIRST, id`)
          .limit(1)
          .forUpdate()
          .skipLocked(),
      )
      .returningAll()
      .executeTakeFirst();
    return row && jobOfRow(row);
  }

  async release(holder: string): Promise<void> {
    await this.#db
      .updateTable('jobs')
      .set({ holder: null, held_until: null })
      .where('state', '=', 'running')
      .where('holder', '=', holder)
      .execute();
  }

  async keysFrom(jobId: string, position: number, limit: number): Promise<readonly string[]> {
    const rows = await this.#db
      .selectFrom('job_keys')
      .select('key_id')
      .where('job_id', '=', jobId)
      .where('position', '>=', position)
      .orderBy('position')
      .limit(limit)
      .execute();
    return rows.map(({ key_id }) => key_id);
  }

  async advance({ jobId, holder, position, keys }: JobStep, leaseMs: number): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('jobs')
      .set({ position: position + keys, held_until: leaseOf(leaseMs) })
      .where('id', '=', jobId)
      .where('state', '=', 'running')
      .where('holder', '=', holder)
      .where('position', '=', position)
      .executeTakeFirst();
    return numUpdatedRows === 1n;
  }

  async noteFailures({ jobId, position, keys }: JobStep, failures: readonly JobFailure[]): Promise<void> {
    await sql`
      UPDATE job_keys SET code = failed.code
      FROM unnest(
        ${failures.map(({ keyId }) => keyId)}::text[], ${failures.map(({ code }) => code)}::text[]
      ) AS failed (key_id, code)
      WHERE job_id = ${jobId} AND position >= ${position} AND position < ${position + keys}
        AND job_keys.key_id = failed.key_id`.execute(this.#db);
    await this.#db
      .updateTable('jobs')
      .set((set) => ({ failed: set('failed', '+', failures.length) }))
      .where('id', '=', jobId)
      .execute();
  }

  async end(jobId: string, holder: string, state: 'done' | 'stopped'): Promise<void> {
    await this.#db
      .updateTable('jobs')
      .set({ ...ended(state), ended_at: sql<Date>`clock_timestamp()` })
      .where('id', '=', jobId)
      .where('state', '=', 'running')
      .where('holder', '=', holder)
      .execute();
  }

  async trim(nowMs: number, keptMs: number, goesOn?: () => boolean): Promise<void> {
    const endedBefore = new Date((await earlierNowMs(this.#db, nowMs)) - keptMs);
    // One at a time: a job may have 100 000 keys, and the statement that removes them has a timeout.
    const old = sql`SELECT id FROM jobs WHERE ended_at < ${endedBefore} LIMIT 1`;
    await deleteInParts(this.#db, sql`jobs WHERE id = (${old})`, goesOn);
  }
}

function ended<State extends Job['state']>(state: State) {
  return { state, holder: null, held_until: null };
}

function leaseOf(ms: number) {
  // By the clock of the database: those of replicas may differ.
  return sql<Date>`clock_timestamp() + ${ms} * interval '1 ms'`;
}

function rowOfJob(
  { id, action, changes, change, allowedUntilMs }: NewJob,
  total: number,
): Insertable<JobsTable> {
  const { actor, atMs, reason, requestId, address, onlyTags } = change;
  return {
    ...{ id, action, total, created_at: new Date(atMs) },
    changes: changes === null ? null : JSON.stringify(changes),
    allowed_until: allowedUntilMs === null ? null : new Date(allowedUntilMs),
    state: total === 0 ? 'done' : 'running',
    ended_at: total === 0 ? new Date(atMs) : null,
    ...actorColumns({ ...actor, name: withoutSecrets(actor.name) }),
    ...{ only_tags: onlyTags, reason: reason && withoutSecrets(reason), request_id: requestId, address },
  };
}

function jobOfRow(row: Selectable<JobsTable>): Job {
  const { id, action, state, total, failed } = row;
  return {
    ...{ id, action, state, total, failed, done: row.position },
    // Written by `rowOfJob`.
    changes: row.changes === null ? null : JSON.parse(row.changes),
    allowedUntilMs: row.allowed_until?.getTime() ?? null,
    endedAtMs: row.ended_at?.getTime() ?? null,
    change: {
      actor: actorOfRow(row),
      atMs: row.created_at.getTime(),
      reason: row.reason,
      requestId: row.request_id,
      address: row.address,
      onlyTags: row.only_tags,
      expects: undefined,
      jobId: id,
    },
  };
}
