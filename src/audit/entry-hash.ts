import { createHash } from 'node:crypto';
import type { AuditEntry } from './audit-entry.ts';

/** What the first entry of a log follows. */
export const CHAIN_START = Buffer.alloc(32);

/** An entry, its changes as the text that is stored: another order of fields would be another hash. */
export interface ChainedEntry extends Omit<AuditEntry, 'changes'> {
  readonly changesText: string;
}

/** SHA-256 of the hash of the entry before and all that the entry says: who changes or removes one changes all that follow. */
export function entryHash(previousHash: Uint8Array, entry: ChainedEntry): Buffer {
  const { sequence, atMs, action, actor, target, changesText, reason, requestId, address, outcome } = entry;
  const content = [
    sequence,
    atMs,
    action,
    [actor.type, actor.id, actor.name],
    [target.type, target.id, target.name, target.tags],
    changesText,
    reason,
    requestId,
    address,
    outcome,
  ];
  return createHash('sha256').update(previousHash).update(JSON.stringify(content)).digest();
}
