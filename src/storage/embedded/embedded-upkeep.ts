import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PGlite } from 'kysely';
import { runEach } from '../postgres/run-each.ts';

/** Queries between two looks at how much was written. */
const QUERIES_A_LOOK = 100;
/** A start after SIGKILL replays this much within a second or two. Bytes of WAL. */
const CHECKPOINT_EVERY = 64 * 2 ** 20;
/** A multiple of the above: after it, pages that were freed are used again. Bytes of WAL. */
const VACUUM_EVERY = 4 * CHECKPOINT_EVERY;

/**
 * Checkpoints and vacuums an embedded Postgres, which has no processes that do it in the background. Both are due after an amount of WAL,
 * so that an idle process does neither; the amount counts on from one start to the next.
 */
export class EmbeddedUpkeep {
  readonly #pglite: Pick<PGlite, 'query'>;
  readonly #onFailure: (error: unknown) => void;
  #queries = 0;
  /** Undefined before the first look. Bytes of WAL since the database was made. */
  #writtenBefore: number | undefined;
  #running: Promise<void> | undefined;
  #isStopped = false;

  /** A checkpoint that failed is tried again with the next look, a vacuum when it is due again. */
  constructor(pglite: Pick<PGlite, 'query'>, onFailure: (error: unknown) => void) {
    this.#pglite = pglite;
    this.#onFailure = onFailure;
  }

  /** To be called for each query. What is due is done after the queries and transactions that wait already. */
  noteQuery(): void {
    this.#queries += 1;
    if (this.#queries < QUERIES_A_LOOK || this.#running !== undefined || this.#isStopped) return;
    this.#queries = 0;
    this.#running = this.#look()
      .catch(this.#onFailure)
      .finally(() => {
        this.#running = undefined;
      });
  }

  /** Resolves when nothing is under way any more. After that nothing begins. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #look(): Promise<void> {
    const written = await this.#writtenBytes();
    const before = this.#writtenBefore ?? written;
    const isDue = (every: number) => Math.floor(written / every) > Math.floor(before / every);
    if (isDue(CHECKPOINT_EVERY)) await this.#pglite.query('CHECKPOINT');
    this.#writtenBefore = written;
    if (isDue(VACUUM_EVERY)) await runEach(await this.#vacuums());
  }

  async #writtenBytes(): Promise<number> {
    const { rows } = await this.#pglite.query<{ bytes: number }>(
      "SELECT (pg_current_wal_lsn() - '0/0')::float8 AS bytes",
    );
    return rows[0]?.bytes ?? 0;
  }

  /** Table by table: no other code of this process runs during a statement. Those of the system too, whose transaction ids must not wrap. */
  async #vacuums(): Promise<readonly (() => Promise<void>)[]> {
    const { rows } = await this.#pglite.query<{ vacuum: string }>(`
      SELECT 'VACUUM ' || CASE relnamespace WHEN 'public'::regnamespace THEN '(ANALYZE) ' ELSE '' END || oid::regclass AS vacuum
      FROM pg_class WHERE relkind IN ('r', 'm') AND relpersistence = 'p'`);
    return rows.map(({ vacuum }) => async () => {
      await nextTurn();
      if (!this.#isStopped) await this.#pglite.query(vacuum);
    });
  }
}
