import type { AnswerHead } from './answer-head.ts';
import type { Exchange } from './exchange.ts';
import { fieldsNamedBy, HOP_BY_HOP_FIELDS } from './hop-by-hop.ts';
import { perName } from './per-name.ts';
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
export function responseFields(head: AnswerHead, exchange: Exchange): string[] {
  const kept = without(head, exchange.isOriginAllowed);
  exchange.pushOwnFields(kept);
  return kept;
}

/** The fields of an interim answer: only what is not bound to this hop. */
export function interimFields(head: AnswerHead): string[] {
  return without(head, false);
}

/** Without those that are ours to write, that `Connection` names, and a length where there is none (RFC 9110 section 8.6). */
function without({ fields, status, connection }: AnswerHead, isCorsOurs: boolean): string[] {
  const named = fieldsNamedBy(connection);
  const hasNoLength = status < 200 || status === 204;
  const kept: string[] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? '';
    const { lowerCase, isReplaced, isCors, isLength } = traitsOf(name);
    if (isReplaced || (isCors && isCorsOurs) || (isLength && hasNoLength) || named?.has(lowerCase)) continue;
    kept.push(name, fields[i + 1] ?? '');
  }
  return kept;
}

const traitsOf = perName((name) => {
  const lowerCase = name.toLowerCase();
  return {
    lowerCase,
    isReplaced: REPLACED.has(lowerCase),
    isCors: CORS_FIELDS.has(lowerCase),
    isLength: lowerCase === 'content-length',
  };
});
