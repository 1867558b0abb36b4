import type { AuditChain } from '../../../audit/audit-chain.ts';
import type { AuditEntry, AuditedAction } from '../../../audit/audit-entry.ts';
import type { ChangeContext } from '../../../audit/change-context.ts';
import { eventOfEntry, type OutboxEvent } from '../../../events/outbox-event.ts';
import { withoutSecrets } from '../../../keys/secrets/secret-redactor.ts';
import { IS_HEARD, insertEvents } from '../events/outbox.ts';
import { inTransaction } from '../in-transaction.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { insertRows } from '../write-rows.ts';
import { actorColumns } from './audit-log-tables.ts';

/** Notes an action for the audit log, which gets it if the transaction is committed, and not if it is rolled back. */
export type NoteAction = (action: AuditedAction) => void;

/** Makes changes together with their entries in the audit log. */
export class AuditedChanges {
  readonly #db: RecordsDatabase;
  readonly #chain: AuditChain;
  readonly #beforeChange: () => void;

  /** `beforeChange` throws where no change may be made. */
  constructor(db: RecordsDatabase, chain: AuditChain, beforeChange: () => void = () => {}) {
    this.#db = db;
    this.#chain = chain;
    this.#beforeChange = beforeChange;
  }

  /**
   * Makes a change and writes the actions that `work` notes into the audit log, both in one transaction, with their
   * events while a webhook or a stream wants any. The log is written last: its lock is held until the commit and nothing is locked after it, so transactions may wait for each other there, but never deadlock.
   */
  async make<Result>(
    change: ChangeContext,
    work: (trx: RecordsDatabase, note: NoteAction) => Promise<Result>,
  ): Promise<Result> {
    this.#beforeChange();
    return inTransaction(this.#db, async (trx) => {
      const actions: AuditedAction[] = [];
      const result = await work(trx, (action) => void actions.push(action));
      if (actions.length > 0) await this.#append(trx, change, actions);
      return result;
    });
  }

  async #append(
    trx: RecordsDatabase,
    change: ChangeContext,
    actions: readonly AuditedAction[],
  ): Promise<void> {
    const end = await lockedEnd(trx);
    let sequence = end.last_sequence;
    let lastEvent = end.last_event;
    let hash = this.#chain.linkAfter({ sequence, hash: end.last_hash }, end.last_mac);
    for (let from = 0; from < actions.length; from += ROWS_AT_ONCE) {
      // Built for each statement: hashing thousands of entries at once would block other requests.
      const events: OutboxEvent[] = [];
      const rows = actions.slice(from, from + ROWS_AT_ONCE).map((action) => {
        sequence += 1;
        const entry = entryOf(sequence, change, action);
        const previousHash = hash;
        hash = this.#chain.hash(previousHash, entry);
        const event = end.is_heard ? eventOfEntry(entry, hash) : undefined;
        if (event !== undefined) events.push(event);
        return { ...columnsOf(entry), key_id: this.#chain.keyId, previous_hash: previousHash, hash };
      });
      await insertRows(trx, 'audit_log', rows);
      await insertEvents(trx, lastEvent, events);
      lastEvent += events.length;
    }
    const last_mac = this.#chain.markEnd('last', { sequence, hash });
    await trx
      .updateTable('audit_log_ends')
      .set({ last_sequence: sequence, last_hash: hash, last_mac, last_event: lastEvent })
      .execute();
  }
}

/** Rows in one statement, which is built at once. */
const ROWS_AT_ONCE = 500;

/**
 * The end of the chain, locked until the transaction ends: no other transaction writes into the log before then. Rejects with
 * `StoreUnavailable` if the log can't be written.
 */
function lockedEnd(trx: RecordsDatabase) {
  return (
    trx
      .selectFrom('audit_log_ends')
      .select(['last_sequence', 'last_hash', 'last_mac', 'last_event'])
      // A row that another transaction has changed meanwhile is read again, a subquery would not be.
      .select(IS_HEARD.as('is_heard'))
      .forUpdate()
      .executeTakeFirstOrThrow()
  );
}

function entryOf(sequence: number, change: ChangeContext, done: AuditedAction): AuditEntry {
  const { actor, atMs, reason, requestId, address, jobId = null } = change;
  const { action, target, changes, outcome = 'success' } = done;
  return {
    sequence,
    // The column has whole milliseconds.
    atMs: new Date(atMs).getTime(),
    action,
    // Names, reasons and metadata are what people type: a secret among them must not stay in the log.
    actor: { ...actor, name: withoutSecrets(actor.name) },
    target: { ...target, name: target.name && withoutSecrets(target.name) },
    changesText: JSON.stringify(changes, masked),
    reason: reason && withoutSecrets(reason),
    requestId,
    address,
    outcome,
    jobId,
  };
}

/**
 * Masks the secrets in a part of the changes, as a replacer of `JSON.stringify`. In the finished text a secret could begin with the letter
 * of an escape, such as the `n` of `\n`.
 */
function masked(_name: string, part: unknown): unknown {
  if (typeof part === 'string') return withoutSecrets(part);
  if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
  return Object.fromEntries(Object.entries(part).map(([name, value]) => [withoutSecrets(name), value]));
}

function columnsOf(entry: AuditEntry) {
  const { actor, target } = entry;
  return {
    sequence: entry.sequence,
    at: new Date(entry.atMs),
    action: entry.action,
    ...actorColumns(actor),
    target_type: target.type,
    target_id: target.id,
    target_name: target.name,
    target_tags: target.tags,
    changes: entry.changesText,
    reason: entry.reason,
    request_id: entry.requestId,
    address: entry.address,
    outcome: entry.outcome,
    job_id: entry.jobId,
  };
}
