import { rotateSeals } from '../secrets/rotate-seals.ts';
import type { SecretVault } from '../secrets/secret-vault.ts';
import type { SessionSecrets, SessionStore, StoredSession } from './session-store.ts';
import type { Session } from './signed-in-session.ts';

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

export type SessionSeal = Pick<SecretVault, 'seal' | 'open' | 'digestLookup'>;

/** What is stored of a session's secrets. The seal can't be opened as that of another session. */
export function sealSession(sessionId: string, content: SealedSession, vault: SessionSeal): SessionSecrets {
  return {
    lookup: vault.digestLookup(Buffer.from(content.digest, 'base64')),
    sealed: vault.seal(contextOf(sessionId), JSON.stringify(content)),
  };
}

/** Throws `UnreadableSecret`. */
export function openSession({ session, sealed }: StoredSession, vault: SessionSeal): SealedSession {
  // `sealSession` alone makes what this opens.
  return JSON.parse(vault.open(contextOf(session.id), sealed)) as SealedSession;
}

function contextOf(sessionId: string): string {
  return `${sessionId} session`;
}

/**
 * Seals what sessions keep with the first encryption key, while replicas run. Resolves with the number of sessions that needed it.
 * `noteUnreadable` gets those that were sealed with an encryption key that is not in the list, also such that have expired.
 */
export function rotateSealedSessions(
  store: Pick<SessionStore, 'after' | 'replace'>,
  vault: SecretVault,
  noteUnreadable: (session: Session) => void,
): Promise<number> {
  return rotateSeals<StoredSession>({
    after: (last, limit) => store.after(last?.session.id, limit),
    isCurrent: ({ sealed }) => vault.isCurrent(sealed),
    seal: (stored) =>
      store.replace(stored, sealSession(stored.session.id, openSession(stored, vault), vault)),
    noteUnreadable: ({ session }) => noteUnreadable(session),
  });
}
