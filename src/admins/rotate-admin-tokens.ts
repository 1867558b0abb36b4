import type { RotationReport, SecretVault } from '../secrets/secret-vault.ts';
import type { StoredTokenSecret } from './admin-token-repository.ts';

/** The valid secrets of a token. */
export interface SealedToken {
  readonly id: string;
  readonly present: StoredTokenSecret;
  readonly previous: StoredTokenSecret | null;
}

/** Access to the part of tokens that depends on the encryption key. Every method rejects with `StoreUnavailable`. */
export interface SealedTokens {
  /** At most `limit` tokens, by id, after `tokenId`. Expired previous secrets are left out. */
  after(tokenId: string | undefined, limit: number): Promise<readonly SealedToken[]>;
  /** Replaces the secrets of a token, unless it was rotated or deleted in the meantime. Its other fields and its version stay. */
  replace(token: SealedToken, by: Omit<SealedToken, 'id'>): Promise<void>;
}

const TOKENS_AT_ONCE = 500;

/**
 * Recomputes the look-up values of all admin tokens with the first encryption key, while replicas run. Counts secrets like
 * `rotateEncryptionKey`. Rejects with `UnreadableSecret` if one was sealed with an encryption key that is not in the list.
 */
export async function rotateAdminTokens(
  tokens: SealedTokens,
  vault: SecretVault,
): Promise<Readonly<RotationReport>> {
  const report: RotationReport = { rotated: 0, current: 0, unkept: 0 };
  for await (const token of allTokens(tokens)) {
    const secrets = [token.present, ...(token.previous === null ? [] : [token.previous])];
    const states = secrets.map((secret) => stateOf(secret, vault));
    for (const state of states) report[state] += 1;
    if (!states.includes('rotated')) continue;
    await tokens.replace(token, {
      present: rotated(token.id, token.present, vault),
      previous: token.previous && rotated(token.id, token.previous, vault),
    });
  }
  return report;
}

/** The ids of tokens that no encryption key opens. Their secrets are rejected. */
export async function unreadableTokens(tokens: SealedTokens, vault: SecretVault): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { id, present } of allTokens(tokens)) {
    if (present.sealedDigest !== null && !vault.knows(present.sealedDigest)) found.push(id);
  }
  return found;
}

async function* allTokens(tokens: SealedTokens): AsyncGenerator<SealedToken, void, undefined> {
  let page = await tokens.after(undefined, TOKENS_AT_ONCE);
  while (page.length > 0) {
    yield* page;
    page = await tokens.after(page.at(-1)?.id, TOKENS_AT_ONCE);
  }
}

function stateOf({ sealedDigest }: StoredTokenSecret, vault: SecretVault): keyof RotationReport {
  if (sealedDigest === null) return 'unkept';
  return vault.isCurrent(sealedDigest) ? 'current' : 'rotated';
}

function rotated(tokenId: string, secret: StoredTokenSecret, vault: SecretVault): StoredTokenSecret {
  if (stateOf(secret, vault) !== 'rotated' || secret.sealedDigest === null) return secret;
  const digest = vault.openDigest(tokenId, secret.sealedDigest);
  return { lookup: vault.digestLookup(digest), sealedDigest: vault.sealDigest(tokenId, digest) };
}
