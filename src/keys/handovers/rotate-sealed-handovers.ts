import { rotateSeals } from '../../secrets/rotate-seals.ts';
import type { SecretVault } from '../../secrets/secret-vault.ts';

/** What a link keeps. */
export interface SealedHandover {
  readonly id: string;
  readonly sealed: Buffer;
}

/** Access to what links keep, for the rotation of encryption keys. Rejects with `StoreUnavailable`. */
export interface SealedHandovers {
  /** At most `limit`, by the id of the link, after `id`. */
  after(id: string | undefined, limit: number): Promise<readonly SealedHandover[]>;
  /** Replaces what a link keeps, unless it was deleted or replaced in the meantime. */
  replace(handover: SealedHandover, sealed: Buffer): Promise<void>;
}

/** The name that the secret of a link is sealed for: a copy in the row of another link, or of a key, can't be opened. */
export function handoverSeal(id: string): string {
  return `handover ${id}`;
}

/**
 * Seals what all links keep with the first encryption key, while replicas run. Resolves with the number of links that needed it. Rejects
 * with `UnreadableSecret` if one was sealed with an encryption key that is not in the list.
 */
export function rotateSealedHandovers(
  handovers: SealedHandovers,
  vault: Pick<SecretVault, 'isCurrent' | 'open' | 'seal'>,
): Promise<number> {
  return rotateSeals<SealedHandover>({
    after: (last, limit) => handovers.after(last?.id, limit),
    isCurrent: ({ sealed }) => vault.isCurrent(sealed),
    seal: (handover) => {
      const name = handoverSeal(handover.id);
      return handovers.replace(handover, vault.seal(name, vault.open(name, handover.sealed)));
    },
  });
}
