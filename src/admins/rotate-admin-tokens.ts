import { allItems, isRead, type NoteUnreadable, rotateSeals } from '../secrets/rotate-seals.ts';
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

/**
 * Recomputes the look-up values of all admin tokens with the first encryption key, while replicas run. Counts secrets like
 * `rotateEncryptionKey`. `noteUnreadable` gets the tokens that were sealed with an encryption key that is not in the list.
 */
export async function rotateAdminTokens(
  tokens: SealedTokens,
  vault: SecretVault,
  noteUnreadable: NoteUnreadable,
): Promise<Readonly<RotationReport>> {
  const report: RotationReport = { rotated: 0, current: 0, unkept: 0 };
  for await (const token of allTokens(tokens)) {
    if (!(await isRead(async () => resealed(token, vault)))) continue;
    for (const state of statesOf(token, vault)) report[state] += 1;
  }
  await rotateSeals<SealedToken>({
    after: (last, limit) => tokens.after(last?.id, limit),
    isCurrent: (token) => !statesOf(token, vault).includes('rotated'),
    seal: (token) => tokens.replace(token, resealed(token, vault)),
    noteUnreadable: ({ id }) => noteUnreadable(id),
  });
  return report;
}

function resealed({ id, present, previous }: SealedToken, vault: SecretVault): Omit<SealedToken, 'id'> {
  return { present: rotated(id, present, vault), previous: previous && rotated(id, previous, vault) };
}

/** The ids of tokens that no encryption key opens. Their secrets are rejected. */
export async function unreadableTokens(tokens: SealedTokens, vault: SecretVault): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { id, present } of allTokens(tokens)) {
    if (present.sealedDigest !== null && !vault.knows(present.sealedDigest)) found.push(id);
  }
  return found;
}

function allTokens(tokens: SealedTokens): AsyncGenerator<SealedToken, void, undefined> {
  return allItems<SealedToken>((last, limit) => tokens.after(last?.id, limit));
}

function statesOf({ present, previous }: SealedToken, vault: SecretVault): readonly (keyof RotationReport)[] {
  return [present, ...(previous === null ? [] : [previous])].map((secret) => stateOf(secret, vault));
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
