import type { AuditedAction } from './audit-entry.ts';
import type { ChangeContext } from './change-context.ts';

/** The audit log besides the entries of changes, which repositories write with the change. All reject with `StoreUnavailable`. */
export interface AuditLog {
  /** Writes an entry for an action that changes no record: something was shown or rejected. */
  record(action: AuditedAction, change: ChangeContext): Promise<void>;
}
