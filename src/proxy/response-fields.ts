import { type AnswerHead, copyOf } from './answer-head.ts';
import type { Exchange } from './exchange.ts';
import { fieldsNamedBy, HOP_BY_HOP_FIELDS } from './hop-by-hop.ts';
import { RATE_LIMIT_FIELDS } from './rate-limit-headers.ts';

/** Never forwarded as they came: they end here, or are ours to write. */
const REPLACED: ReadonlySet<string> = new Set<string>([
  ...HOP_BY_HOP_FIELDS,
  ...RATE_LIMIT_FIELDS,
  'x-request-id',
]);

/** What the gateway decides for cross-origin callers that it allows. A backend may expose more fields than we do. */
const CORS_FIELDS: ReadonlySet<string> = new Set([
  'access-control-allow-origin',
  'access-control-allow-credentials',
]);

/** The fields of the answer to the client, in one pass over the backend's: case, order and repetition kept, then ours. */
export function responseFields({ fields, status, connection }: AnswerHead, exchange: Exchange): string[] {
  const isOurs = exchange.isOriginAllowed ? isReplacedOrCors : isReplaced;
  const named = fieldsNamedBy(connection);
  const kept: string[] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? '';
    const lower = lowerCaseOf(name);
    // RFC 9110 section 8.6: a 204 has no length.
    if (isOurs(lower) || named?.has(lower) || (status === 204 && lower === 'content-length')) continue;
    kept.push(name, fields[i + 1] ?? '');
  }
  exchange.pushOwnFields(kept);
  return kept;
}

/** The fields of an interim answer: only what is not bound to this hop. */
export function interimFields({ fields, connection }: AnswerHead): string[] {
  const named = fieldsNamedBy(connection);
  const kept: string[] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? '';
    const lower = lowerCaseOf(name);
    if (isReplaced(lower) || named?.has(lower) || lower === 'content-length') continue;
    kept.push(name, fields[i + 1] ?? '');
  }
  return kept;
}

function isReplaced(name: string): boolean {
  return REPLACED.has(name);
}

function isReplacedOrCors(name: string): boolean {
  return REPLACED.has(name) || CORS_FIELDS.has(name);
}

const lowerCases = new Map<string, string>();
const MOST_NAMES = 1000;

/** A backend has few names: each is folded once. */
function lowerCaseOf(name: string): string {
  const known = lowerCases.get(name);
  if (known !== undefined) return known;
  const lower = copyOf(name).toLowerCase();
  if (lowerCases.size < MOST_NAMES) lowerCases.set(copyOf(name), lower);
  return lower;
}
