import { createHash } from 'node:crypto';
import type { AuditEntry } from './audit-entry.ts';

/** The hash before the first entry. */
export const CHAIN_START = Buffer.alloc(32);

/** An entry with its changes as stored text: another order of the fields would change the hash. */
export interface ChainedEntry extends Omit<AuditEntry, 'changes'> {
  readonly changesText: string;
}

/** SHA-256 of the previous entry's hash and the whole entry: to change or remove an entry, all later ones must be changed, too. */
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
