import type { SecretVault } from '../secrets/secret-vault.ts';
import { sealedFor } from './idempotent-requests.ts';
import type { SealedResponses, StoredResponse } from './response-store.ts';

const RESPONSES_AT_ONCE = 500;

/**
 * Replaces the seal of every stored response by one with the first encryption key, while replicas run. Resolves with the number of
 * responses that needed it. Rejects with `UnreadableSecret` if one was sealed with an encryption key that is not in the list.
 */
export async function rotateSealedResponses(store: SealedResponses, vault: SecretVault): Promise<number> {
  let rotated = 0;
  let last: Buffer | undefined;
  while (true) {
    const page = await store.after(last, RESPONSES_AT_ONCE);
    const outdated = page.filter(({ sealed }) => !vault.isCurrent(sealed));
    for (const response of outdated) await store.replace(response, sealedAnew(response, vault));
    rotated += outdated.length;
    last = page.at(-1)?.id;
    if (page.length < RESPONSES_AT_ONCE) return rotated;
  }
}

function sealedAnew({ id, sealed }: StoredResponse, vault: SecretVault): Buffer {
  const name = sealedFor(id);
  return vault.seal(name, vault.open(name, sealed));
}
