import type { AuditedAction } from '../../audit/audit-entry.ts';
import type { AuditLog } from '../../audit/audit-log.ts';
import type { ChangeContext } from '../../audit/change-context.ts';
import { auditedChange } from './audited-change.ts';
import type { RecordsDatabase } from './records-database.ts';

/** The audit log in Postgres. */
export class PostgresAuditLog implements AuditLog {
  readonly #db: RecordsDatabase;

  constructor(db: RecordsDatabase) {
    this.#db = db;
  }

  async record(action: AuditedAction, change: ChangeContext): Promise<void> {
    await auditedChange(this.#db, change, async (_trx, note) => note(action));
  }
}
