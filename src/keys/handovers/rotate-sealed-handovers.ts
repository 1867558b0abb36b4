import { type NoteUnreadable, rotateSealedRows, type SealedRows } from '../../secrets/rotate-seals.ts';
import type { SecretVault } from '../../secrets/secret-vault.ts';

/** What a link keeps. */
export interface SealedHandover {
  readonly id: string;
  readonly sealed: Buffer;
}

/** What links keep, for the rotation of encryption keys. Every method rejects with `StoreUnavailable`. */
export type SealedHandovers = SealedRows<SealedHandover>;

/** The name that the secret of a link is sealed for: a copy in the row of another link, or of a key, can't be opened. */
export function handoverSeal(id: string): string {
  return `handover ${id}`;
}

/**
 * Seals what all links keep with the first encryption key, while replicas run. Resolves with the number of links that needed it.
 * `noteUnreadable` gets those that were sealed with an encryption key that is not in the list.
 */
export function rotateSealedHandovers(
  handovers: SealedHandovers,
  vault: Pick<SecretVault, 'isCurrent' | 'open' | 'seal'>,
  noteUnreadable: NoteUnreadable,
): Promise<number> {
  return rotateSealedRows<SealedHandover>(handovers, handoverSeal, { vault, noteUnreadable });
}
