import { AdminTokenNotFound, InvalidToken } from '../errors.ts';
import type { Principal } from '../permissions/principal.ts';
import type { ManagementServices, StreamedText } from './endpoint.ts';

interface PrincipalServices extends Pick<ManagementServices, 'clock'> {
  readonly tokens: Pick<ManagementServices['tokens'], 'get'>;
  readonly sessions?: Pick<NonNullable<ManagementServices['sessions']>, 'isUnchanged'> | undefined;
}

/** How long the chunks of a download are sent without a check of the principal. */
const CHECK_EVERY_MS = 15_000;

/**
 * The chunks of a download, as long as the principal is unchanged: a slow client may take hours, in which its credential may be deleted.
 * Throws `InvalidToken` then: a download that merely ended would look complete.
 */
export async function* whileUnchanged(
  chunks: StreamedText['chunks'],
  principal: Principal,
  services: PrincipalServices,
): AsyncGenerator<string, void, undefined> {
  const { clock } = services;
  let checkedAtMs = clock.monotonicMs();
  for await (const chunk of chunks) {
    // After the chunk was read: what it has is what the principal may read now.
    const nowMs = clock.monotonicMs();
    if (nowMs - checkedAtMs >= CHECK_EVERY_MS) {
      if (!(await isUnchanged(principal, services))) throw new InvalidToken();
      checkedAtMs = nowMs;
    }
    yield chunk;
  }
}

/**
 * Whether a principal is still as it was when it made the request: a token that was changed, rotated or deleted since, or has expired, must
 * be presented again, and a person whose session has ended must sign in again.
 */
export async function isUnchanged(
  principal: Principal,
  { tokens, sessions, clock }: PrincipalServices,
): Promise<boolean> {
  const { type, id, version, expiresAtMs } = principal;
  if (expiresAtMs !== null && expiresAtMs <= clock.nowMs()) return false;
  if (type === 'person' && id !== null) return sessions?.isUnchanged(id, principal) ?? false;
  if (type !== 'token' || id === null) return true;
  try {
    return (await tokens.get(id, { onlyTags: [] })).version === version;
  } catch (error) {
    if (error instanceof AdminTokenNotFound) return false;
    throw error;
  }
}
