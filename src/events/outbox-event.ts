import type { AuditEntry } from '../audit/audit-entry.ts';
import { auditIdOf } from '../audit/audit-entry.ts';
import { TYPES_OF_ACTIONS } from './types-of-actions.ts';

/** An event as it is written into the outbox. */
export interface OutboxEvent {
  /** Unique among all events of this gateway. The same event has the same id, however often it is made. */
  readonly id: string;
  readonly type: string;
  readonly subject: string;
  /** Milliseconds since 1970. */
  readonly atMs: number;
  /** The tags of the record that it is about. */
  readonly tags: readonly string[];
  /** `data` as JSON. */
  readonly data: string;
}

/** Bytes of an entry's hash in the id of its event. */
const ID_HASH_BYTES = 6;

/** The event for an entry of the audit log with this hash, made from the entry itself; undefined for an entry about something that is no change. */
export function eventOfEntry(entry: AuditEntry, hash: Uint8Array): OutboxEvent | undefined {
  const { sequence, atMs, action, actor, target, reason, outcome } = entry;
  const type = TYPES_OF_ACTIONS[action];
  if (type === null) return undefined;
  const auditId = auditIdOf(sequence);
  const rest = {
    actor: { type: actor.type, adminTokenId: actor.type === 'token' ? actor.id : null, name: actor.name },
    reason,
    auditId,
    ...(outcome !== 'success' && { outcome }),
  };
  // The text of the changes is that of the entry: their secrets are masked already.
  const data = `{"changes":${entry.changesText},${JSON.stringify(rest).slice(1)}`;
  return { id: eventIdOf(sequence, hash), type, subject: target.id, atMs, tags: target.tags, data };
}

/**
 * The id of an entry's event. After Postgres went back to an earlier state, other entries get the numbers of those that are lost: their hashes
 * make the ids differ, so that a receiver which drops ids it has seen drops none of them.
 */
export function eventIdOf(sequence: number, hash: Uint8Array): string {
  return `${auditIdOf(sequence)}_${Buffer.from(hash).toString('hex', 0, ID_HASH_BYTES)}`;
}

/** A CloudEvent 1.0 as JSON. */
export function cloudEventText(event: OutboxEvent, source: string): string {
  const { id, type, subject, atMs, data } = event;
  const attributes = {
    specversion: '1.0',
    id,
    source,
    type,
    subject,
    time: new Date(atMs).toISOString(),
    datacontenttype: 'application/json',
  };
  return `${JSON.stringify(attributes).slice(0, -1)},"data":${data}}`;
}
