import { type RawBuilder, sql } from 'kysely';
import {
  type PlanPreview,
  type PlanPreviews,
  type PreviewRequest,
  PreviewTooLarge,
} from '../../../plans/preview/plan-preview.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { isStatementTimeout } from '../unavailability.ts';
import { type PreviewRow, previewQuery } from './preview-query.ts';

/** Enough for the sums of some 10 000 keys by day. A server process takes only as much as it needs. */
const SUMS_MEMORY = '64MB';
/** Below that of the connection, whose timeout would mean that Postgres is away. */
const TIMEOUT_MS = 4000;

/** Previews of plans from the days of keys in Postgres. What is summed stays in Postgres: the gateway reads one row. */
export class PostgresPlanPreviews implements PlanPreviews {
  readonly #db: RecordsDatabase;

  readonly #timeoutMs: number;

  constructor(db: RecordsDatabase, timeoutMs = TIMEOUT_MS) {
    this.#db = db;
    this.#timeoutMs = timeoutMs;
  }

  async read(request: PreviewRequest): Promise<PlanPreview> {
    const [row] = await this.#rowsOf(previewQuery(request));
    if (row === undefined) throw new Error('An aggregate has one row.');
    return {
      totals: { requests: row.requests, wasLimited: row.was, wouldBeLimited: row.would },
      keys: row.keys,
      keysWereLimited: row.keys_were,
      keysWouldBeLimited: row.keys_would,
      byLimit: row.by_limit,
      worst: row.worst ?? [],
    };
  }

  async #rowsOf(query: RawBuilder<PreviewRow>): Promise<readonly PreviewRow[]> {
    try {
      return await this.#db.transaction().execute(async (transaction) => {
        await sql`SELECT set_config('work_mem', ${SUMS_MEMORY}, true),
          set_config('statement_timeout', ${String(this.#timeoutMs)}, true)`.execute(transaction);
        return (await query.execute(transaction)).rows;
      });
    } catch (error) {
      if (isStatementTimeout(error)) throw new PreviewTooLarge(error);
      throw error;
    }
  }
}
