import { sql } from 'kysely';
import type {
  OnceOnly,
  PerformedOnce,
  ResponseStore,
  StoredResponse,
} from '../../idempotency/response-store.ts';
import { deleteInParts } from './delete-in-parts.ts';
import { earlierNowMs } from './earlier-now.ts';
import type { RecordScope, RecordUnit } from './record-units.ts';
import type { RecordsDatabase } from './records-database.ts';

/** A response may have hundreds of kilobytes. */
const REMOVED_AT_ONCE = 1000;

/** Responses in Postgres. */
export class PostgresResponseStore implements ResponseStore<RecordUnit> {
  readonly #db: RecordsDatabase;
  readonly #inUnit: RecordScope['inUnit'];

  constructor(db: RecordsDatabase, inUnit: RecordScope['inUnit']) {
    this.#db = db;
    this.#inUnit = inUnit;
  }

  performOnce(
    { id, atMs, validSinceMs }: OnceOnly,
    work: (unit: RecordUnit) => Promise<Buffer>,
    responseTo: (failure: unknown) => Buffer,
  ): Promise<PerformedOnce> {
    return this.#inUnit(async (unit) => {
      if (!(await isLocked(unit.db, id))) return { kind: 'under_way' };
      const stored = await findResponse(unit.db, id, validSinceMs);
      if (stored !== undefined) return { kind: 'stored', sealed: stored };
      const sealed = await unit.attempt(() => work(unit)).catch(responseTo);
      await storeResponse(unit.db, { id, sealed }, atMs);
      return { kind: 'performed', sealed };
    });
  }

  async prune(nowMs: number, keptMs: number, goesOn?: () => boolean): Promise<void> {
    const beforeMs = (await earlierNowMs(this.#db, nowMs)) - keptMs;
    await deleteInParts(
      this.#db,
      sql`idempotent_responses WHERE id IN (
        SELECT id FROM idempotent_responses WHERE created_at < ${new Date(beforeMs)}
        LIMIT ${REMOVED_AT_ONCE} FOR UPDATE SKIP LOCKED)`,
      goesOn,
    );
  }

  async after(id: Buffer | undefined, limit: number): Promise<readonly StoredResponse[]> {
    const first = this.#db
      .selectFrom('idempotent_responses')
      .select(['id', 'sealed'])
      .orderBy('id')
      .limit(limit);
    const rows = await (id === undefined ? first : first.where('id', '>', id)).execute();
    return rows.map((row) => ({ id: Buffer.from(row.id), sealed: Buffer.from(row.sealed) }));
  }

  async replace({ id, sealed }: StoredResponse, sealedAnew: Buffer): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('idempotent_responses')
      .set({ sealed: sealedAnew })
      .where('id', '=', id)
      .where('sealed', '=', sealed)
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }
}

/** Takes a lock that Postgres releases with the transaction, also if the replica crashes. False if another transaction has it. */
async function isLocked(trx: RecordsDatabase, id: Buffer): Promise<boolean> {
  const { rows } = await sql<{ is_locked: boolean }>`
    SELECT pg_try_advisory_xact_lock(${id.readBigInt64BE().toString()}::bigint) AS is_locked`.execute(trx);
  return rows[0]?.is_locked === true;
}

async function findResponse(
  trx: RecordsDatabase,
  id: Buffer,
  validSinceMs: number,
): Promise<Buffer | undefined> {
  const row = await trx
    .selectFrom('idempotent_responses')
    .select('sealed')
    .where('id', '=', id)
    .where('created_at', '>=', new Date(validSinceMs))
    .executeTakeFirst();
  return row && Buffer.from(row.sealed);
}

async function storeResponse(
  trx: RecordsDatabase,
  { id, sealed }: StoredResponse,
  atMs: number,
): Promise<void> {
  const response = { created_at: new Date(atMs), sealed };
  await trx
    .insertInto('idempotent_responses')
    .values({ id, ...response })
    // The stored response has expired but was not pruned yet.
    .onConflict((conflict) => conflict.column('id').doUpdateSet(response))
    .execute();
}
