import type { Insertable } from 'kysely';
import { type ChainedEntry, entryHash } from '../../audit/audit-chain.ts';
import type { AuditedAction } from '../../audit/audit-entry.ts';
import type { ChangeContext } from '../../audit/change-context.ts';
import type { AuditLogTable } from './audit-log-tables.ts';
import type { RecordsDatabase } from './records-database.ts';

/** Notes an action, which the audit log gets when the transaction is committed, and not at all when it is rolled back. */
export type NoteAction = (action: AuditedAction) => void;

/**
 * Makes a change and writes what `work` notes of it into the audit log, both in one transaction. The log is written last: its lock is held
 * until the commit and nothing is locked after it, so that transactions wait for each other there but never in a circle.
 */
export function auditedChange<Result>(
  db: RecordsDatabase,
  change: ChangeContext,
  work: (trx: RecordsDatabase, note: NoteAction) => Promise<Result>,
): Promise<Result> {
  return db.transaction().execute(async (trx) => {
    const actions: AuditedAction[] = [];
    const result = await work(trx, (action) => void actions.push(action));
    if (actions.length > 0) await appendEntries(trx, change, actions);
    return result;
  });
}

/** Rows in one statement: Postgres takes at most 65535 parameters. */
const ROWS_AT_ONCE = 1000;

async function appendEntries(
  trx: RecordsDatabase,
  change: ChangeContext,
  actions: readonly AuditedAction[],
): Promise<void> {
  const end = await trx
    .selectFrom('audit_log_ends')
    .select(['last_sequence', 'last_hash'])
    .forUpdate()
    .executeTakeFirstOrThrow();
  let sequence = end.last_sequence;
  let hash: Uint8Array = end.last_hash;
  const rows = actions.map((action) => {
    sequence += 1;
    const row = rowOf({ sequence, change, action, previousHash: hash });
    hash = row.hash;
    return row;
  });
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
    await trx
      .insertInto('audit_log')
      .values(rows.slice(from, from + ROWS_AT_ONCE))
      .execute();
  }
  await trx.updateTable('audit_log_ends').set({ last_sequence: sequence, last_hash: hash }).execute();
}

function rowOf({
  sequence,
  change,
  action: { action, target, changes, outcome: rejection },
  previousHash,
}: {
  readonly sequence: number;
  readonly change: ChangeContext;
  readonly action: AuditedAction;
  readonly previousHash: Uint8Array;
}): Insertable<AuditLogTable> {
  const { actor, atMs, reason, requestId, address } = change;
  const at = new Date(atMs);
  const outcome = rejection ?? 'success';
  const changesText = JSON.stringify(changes);
  const entry: ChainedEntry = {
    sequence,
    // Postgres keeps whole milliseconds.
    atMs: at.getTime(),
    actor,
    action,
    target,
    changesText,
    reason,
    requestId,
    address,
    outcome,
  };
  return {
    sequence,
    at,
    action,
    actor_type: actor.type,
    actor_id: actor.id,
    actor_name: actor.name,
    target_type: target.type,
    target_id: target.id,
    target_name: target.name,
    target_tags: target.tags,
    changes: changesText,
    reason,
    request_id: requestId,
    address,
    outcome,
    previous_hash: previousHash,
    hash: entryHash(previousHash, entry),
  };
}
