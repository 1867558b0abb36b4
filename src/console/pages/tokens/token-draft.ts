import type { components } from '../../../client/management-api.ts';
import type { Scope } from '../../api/api-context.tsx';
import { changedFields } from '../../api/changed-fields.ts';
import { instantText } from '../../api/instant-text.ts';
import { dateStart, dateText } from '../../format/date-text.ts';
import { wordsOf } from '../../format/words-of.ts';
import type { AdminToken } from './shown-token.ts';

type CreateBody = components['schemas']['CreateAdminTokenRequest'];

/** The form of a token. */
export interface TokenDraft {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Separated by spaces or commas. */
  readonly onlyTags: string;
  readonly allowedIps: string;
  /** The last valid date, in the browser's time zone; empty if the token never expires. */
  readonly expires: string;
}

export const EMPTY_TOKEN: TokenDraft = { name: '', scopes: [], onlyTags: '', allowedIps: '', expires: '' };

export function draftOf({ name, scopes, onlyTags, allowedIps, expiresAt }: AdminToken): TokenDraft {
  return {
    name,
    scopes,
    onlyTags: onlyTags.join(' '),
    allowedIps: (allowedIps ?? []).join(' '),
    // A token is valid until the instant before.
    expires: expiresAt === null ? '' : dateText(Date.parse(expiresAt) - 1),
  };
}

/** The request body for a draft. */
export function bodyOfDraft({ name, scopes, onlyTags, allowedIps, expires }: TokenDraft) {
  const ips = wordsOf(allowedIps);
  return {
    name: name.trim(),
    scopes: [...scopes],
    onlyTags: wordsOf(onlyTags),
    allowedIps: ips.length === 0 ? null : ips,
    expiresAt: expires === '' ? null : endOf(expires),
  } satisfies CreateBody;
}

/** The fields that differ from the token. An expiry that was not edited keeps its time of day. */
export function changesOf(token: AdminToken, draft: TokenDraft): Partial<ReturnType<typeof bodyOfDraft>> {
  return changedFields(bodyOfDraft(draftOf(token)), bodyOfDraft(draft));
}

function endOf(date: string): string {
  return instantText(dateStart(date, 1));
}
