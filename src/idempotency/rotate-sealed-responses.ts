import { type NoteUnreadable, rotateSealedRows } from '../secrets/rotate-seals.ts';
import type { SecretVault } from '../secrets/secret-vault.ts';
import { sealedFor } from './idempotent-requests.ts';
import type { SealedResponses, StoredResponse } from './response-store.ts';

/**
 * Replaces the seal of every stored response by one with the first encryption key, while replicas run. Resolves with the number of
 * responses that needed it. `noteUnreadable` gets those that were sealed with an encryption key that is not in the list.
 */
export function rotateSealedResponses(
  store: SealedResponses,
  vault: SecretVault,
  noteUnreadable: NoteUnreadable,
): Promise<number> {
  return rotateSealedRows<StoredResponse>(store, sealedFor, { vault, noteUnreadable });
}
