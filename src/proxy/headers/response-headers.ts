import { type HeaderName, memoizeByName } from '../../backend/header-names.ts';
import { headerValue, type ResponseHead } from '../../backend/response-head.ts';
import { flatText } from '../../http/flat-text.ts';
import { decidesHead, headerLine } from '../../http/node-internals.ts';
import type { KeyEntry } from '../../keys/cache/key-entry.ts';
import { periodSeconds } from '../../limiter/period.ts';
import type { Decision } from '../../limiter/rate-limiter.ts';
import {
  type DecidedWindow,
  type Limit,
  MAIN_LIMIT_ID,
  remainingIn,
  tightestWindow,
} from '../../limiter/request-limits.ts';
import { isoSeconds } from '../../platform/timestamps.ts';
import { COST_HEADER } from './reported-cost.ts';

/** Headers that end at each hop, in both directions (RFC 9110 section 7.6.1, RFC 7540 section 3.2.1). Lower case. */
export const HOP_BY_HOP_HEADERS = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'proxy-authenticate',
  'proxy-authentication-info',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
] as const;

/** Headers that `Connection` can't remove: credentials, target and framing. */
const PROTECTED: ReadonlySet<string> = new Set([
  'x-api-key',
  'authorization',
  'host',
  'content-length',
  'transfer-encoding',
]);

/** Common options of `Connection` that name no header. */
const PLAIN: ReadonlySet<string> = new Set(['keep-alive', 'close', 'upgrade', '']);

/**
 * The headers, in lower case, that the `Connection` header of a message names and that therefore end at this hop. Usually undefined: it
 * names none.
 */
export function headersNamedBy(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  const named = connection
    .toLowerCase()
    .split(',')
    .map((option) => option.trim())
    .filter((option) => !PLAIN.has(option) && !PROTECTED.has(option));
  return named.length === 0 ? undefined : new Set(named);
}

/** Tells a client with the previous secret of a rotated key when that secret expires. A backend's header of this name is dropped. */
export const KEY_EXPIRY_HEADER = 'Tollgate-Key-Expires';

/** The line of the header; empty for a request with the key's current secret. */
export function keyExpiryLine({ previousUntilMs, snapshot }: KeyEntry): string {
  if (previousUntilMs === null) return '';
  const untilMs = Math.min(previousUntilMs, snapshot.expiresAtMs ?? Number.POSITIVE_INFINITY);
  return headerLine(KEY_EXPIRY_HEADER, isoSeconds(untilMs));
}

/** Headers that only the gateway writes: those of a backend never reach the client. Lower case. */
export const RATE_LIMIT_HEADERS = [
  'ratelimit-policy',
  'ratelimit',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
] as const;

/**
 * The lines of the rate-limit headers: `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11 with every enforced
 * window that applied, and the older `X-RateLimit-*` of the tightest. Empty for a decision without the shared counter
 * (degraded) or without a limit (unlimited). Resets are rounded up, so that the window is over for a client that retries at the reset.
 */
export function rateLimitLines(planId: string, decision: Decision): string {
  if ((decision.kind !== 'allowed' && decision.kind !== 'limited') || decision.degraded) return '';
  const { windows, nowMs } = decision;
  const tightest = tightestWindow(windows);
  if (tightest === undefined) return '';
  const remaining = String(shownRemaining(tightest));
  const end = `\r\nX-RateLimit-Remaining: ${remaining}\r\nX-RateLimit-Reset: ${Math.ceil(tightest.resetAtMs / 1000)}\r\n`;
  const start = windows.length === 1 ? textsOf(tightest.limit, planId).start : undefined;
  if (start !== undefined) return `${start}${remaining};t=${secondsToReset(tightest, nowMs)}${end}`;
  let policies = '';
  let states = '';
  for (const window of windows) {
    if (window.limit.mode !== 'enforce') continue;
    const { name, policy } = textsOf(window.limit, planId);
    const separator = policies === '' ? '' : ', ';
    policies += separator + (policy ?? policyOf(name, window.quota, window.limit));
    states += `${separator}${name};r=${shownRemaining(window)};t=${secondsToReset(window, nowMs)}`;
  }
  return `${startOf(policies, tightest.quota)}${states}${end}`;
}

/** The largest integer of a structured field (RFC 9651 section 3.3.1). After a grant more may remain. */
const LARGEST_INTEGER = 999_999_999_999_999;

function shownRemaining(window: DecidedWindow): number {
  return Math.min(remainingIn(window), LARGEST_INTEGER);
}

/** Whole seconds until the window ends, rounded up, never negative. */
export function secondsToReset({ resetAtMs }: DecidedWindow, nowMs: number): number {
  return Math.max(0, Math.ceil((resetAtMs - nowMs) / 1000));
}

/** What is the same for every request under a limit. */
interface LimitTexts {
  readonly name: string;
  /** Undefined where the limit changes with time. */
  readonly policy: string | undefined;
  /** The lines up to the remaining count, if this is the only limit. Undefined where the limit changes with time. */
  readonly start: string | undefined;
}

/** Each limit object belongs to one copy of one plan, and lives as long as that copy. */
const textsOfLimits = new WeakMap<Limit, LimitTexts>();

function textsOf(limit: Limit, planId: string): LimitTexts {
  const known = textsOfLimits.get(limit);
  if (known !== undefined) return known;
  // Ids have only characters that need no escape in a structured field's string.
  const name = limit.id === MAIN_LIMIT_ID ? `"${planId}"` : `"${planId}.${limit.id}"`;
  const policy = limit.endsAtMs === null ? policyOf(name, limit.limit, limit) : undefined;
  const start = policy && flatText(`${startOf(policy, limit.limit)}${name};r=`);
  const texts = { name, policy, start };
  textsOfLimits.set(limit, texts);
  return texts;
}

function startOf(policies: string, quota: number): string {
  return `RateLimit-Policy: ${policies}\r\nX-RateLimit-Limit: ${quota}\r\nRateLimit: `;
}

function policyOf(name: string, quota: number, { period }: Limit): string {
  return `${name};q=${quota};w=${periodSeconds(period)}`;
}

/** The headers of a response to the client. `decisive` is a flat list of those that decide its framing; `lines` has the others. */
export interface ResponseHeaders {
  readonly lines: string;
  readonly decisive: string[];
  /** The lines have a `Date`. */
  readonly hasDate: boolean;
}

/** What the gateway adds to a response. */
interface OwnHeaders {
  /** Its CORS headers replace those of the backend. */
  readonly isOriginAllowed: boolean;
  ownLines(): string;
}

/** The headers of the response to the client, in one pass over the backend's: case, order and repetition kept, then the gateway's own. */
export function responseHeaders(head: ResponseHead, exchange: OwnHeaders): ResponseHeaders {
  const { names } = head;
  const named = headersNamedBy(head.connection);
  let decisive: string[] = [];
  let lines = '';
  let hasDate = false;
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    if (name === undefined) continue;
    const treatment = treatmentOf(name.text);
    if (isDropped(name, treatment, head, named) || (treatment.isCors && exchange.isOriginAllowed)) continue;
    const line = head.lines[i] ?? '';
    if (!treatment.isDecisive) lines += line;
    // There is seldom more than one, and an array that grows would have room for many.
    else if (decisive.length === 0) decisive = [name.text, headerValue(name, line)];
    else decisive.push(name.text, headerValue(name, line));
    hasDate ||= treatment.isDate;
  }
  return { lines: lines + exchange.ownLines(), decisive, hasDate };
}

/** The headers of an interim response, a flat list, without those that end at this hop. */
export function interimHeaders(head: ResponseHead): string[] {
  const named = headersNamedBy(head.connection);
  return head.names.flatMap((name, i) =>
    isDropped(name, treatmentOf(name.text), head, named)
      ? []
      : [name.text, headerValue(name, head.lines[i] ?? '')],
  );
}

/** How a header of the backend is treated, by its name. */
interface Treatment {
  /** Never forwarded as received: it ends at this hop, or the gateway writes its own. */
  readonly isReplaced: boolean;
  /** Replaced by the gateway's own if it allows the origin. Not `Access-Control-Expose-Headers`: a backend may expose more headers. */
  readonly isCors: boolean;
  /** Decides how the response to the client is framed. */
  readonly isDecisive: boolean;
  readonly isDate: boolean;
}

const REPLACED: ReadonlySet<string> = new Set<string>([
  ...HOP_BY_HOP_HEADERS,
  ...RATE_LIMIT_HEADERS,
  COST_HEADER,
  KEY_EXPIRY_HEADER.toLowerCase(),
  'x-request-id',
]);

const CORS: ReadonlySet<string> = new Set([
  'access-control-allow-origin',
  'access-control-allow-credentials',
]);

const treatmentOf = memoizeByName((text): Treatment => {
  const lowerCase = text.toLowerCase();
  return {
    isReplaced: REPLACED.has(lowerCase),
    isCors: CORS.has(lowerCase),
    isDecisive: decidesHead(lowerCase),
    isDate: lowerCase === 'date',
  };
});

/** Replaced, or named by `Connection`, or a length on a response without a body (RFC 9110 section 8.6). */
function isDropped(
  name: HeaderName,
  { isReplaced }: Treatment,
  { status }: ResponseHead,
  named: ReadonlySet<string> | undefined,
): boolean {
  return (
    isReplaced ||
    (name.framing === 'content-length' && (status < 200 || status === 204)) ||
    named?.has(name.lowerCase) === true
  );
}
