import type { SecretVault } from '../secrets/secret-vault.ts';
import type { SessionStore, StoredSession } from './session-store.ts';

/** Tokens of the identity provider, with which the gateway asks again what a person may do. */
export interface ProviderTokens {
  /** Null: the provider has given none. */
  readonly refreshToken: string | null;
  readonly accessToken: string;
}

/** What a session keeps encrypted. */
export interface SealedSession extends ProviderTokens {
  /** The SHA-256 digest of the secret, base64. */
  readonly digest: string;
}

export type SessionSeal = Pick<SecretVault, 'seal' | 'open'>;

/** It can't be opened as that of another session. */
export function sealSession(sessionId: string, content: SealedSession, vault: SessionSeal): Buffer {
  return vault.seal(contextOf(sessionId), JSON.stringify(content));
}

/** Throws `UnreadableSecret`. */
export function openSession({ session, sealed }: StoredSession, vault: SessionSeal): SealedSession {
  // `sealSession` alone makes what this opens.
  return JSON.parse(vault.open(contextOf(session.id), sealed)) as SealedSession;
}

function contextOf(sessionId: string): string {
  return `${sessionId} session`;
}

const SESSIONS_AT_ONCE = 500;

/**
 * Seals what sessions keep with the first encryption key, while replicas run. Resolves with the number of sessions that needed it. Rejects
 * with `UnreadableSecret` if one was sealed with an encryption key that is not in the list.
 */
export async function rotateSealedSessions(
  store: Pick<SessionStore, 'after' | 'replace' | 'find'>,
  vault: SecretVault,
): Promise<number> {
  let rotated = 0;
  let page = await store.after(undefined, SESSIONS_AT_ONCE);
  while (page.length > 0) {
    for (const stored of page) if (await rotateOne(store, stored, vault)) rotated += 1;
    page = await store.after(page.at(-1)?.session.id, SESSIONS_AT_ONCE);
  }
  return rotated;
}

/** A renewal at the same time seals with the key of its replica: then the session is read again. */
async function rotateOne(
  store: Pick<SessionStore, 'replace' | 'find'>,
  found: StoredSession,
  vault: SecretVault,
): Promise<boolean> {
  let stored: StoredSession | undefined = found;
  while (stored !== undefined && !vault.isCurrent(stored.sealed)) {
    const content = openSession(stored, vault);
    const lookup = vault.digestLookup(Buffer.from(content.digest, 'base64'));
    const sealed = sealSession(stored.session.id, content, vault);
    if (await store.replace(stored, { lookup, sealed })) return true;
    stored = await store.find(stored.session.id);
  }
  return false;
}
