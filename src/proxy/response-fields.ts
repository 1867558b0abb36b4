import type { Exchange } from './exchange.ts';
import { fieldsNamedBy, HOP_BY_HOP_FIELDS } from './hop-by-hop.ts';
import { RATE_LIMIT_FIELDS } from './rate-limit-headers.ts';

/** The fields of an answer as the client gets them. */
export interface ResponseFields {
  /** A flat list of names and values, ours included. */
  readonly fields: string[];
  /** Length of the body that the backend announced, in bytes; undefined when it did not. */
  readonly length: number | undefined;
}

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

/**
 * The fields of the answer to the client, in one pass over the backend's: case, order and repetition kept, then ours. Undefined when
 * the backend used a transfer coding that we do not know, so that nobody can tell where its body ends.
 */
export function responseFields(
  raw: readonly Buffer[],
  status: number,
  exchange: Exchange,
): ResponseFields | undefined {
  const fields: string[] = [];
  const ends: string[] = [];
  const isOurs = exchange.isOriginAllowed ? isReplacedOrCors : isReplaced;
  let length: number | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]?.toString('latin1') ?? '';
    const value = raw[i + 1]?.toString('latin1') ?? '';
    const lower = name.toLowerCase();
    if (isOurs(lower)) {
      if (lower === 'transfer-encoding' && value.toLowerCase() !== 'chunked') return undefined;
      if (lower === 'connection') ends.push(value);
      continue;
    }
    if (lower === 'content-length') {
      // RFC 9110 section 8.6: a 204 has none.
      if (status === 204) continue;
      length = Number(value);
    }
    fields.push(name, value);
  }
  const named = ends.length === 0 ? undefined : fieldsNamedBy(ends.join(','));
  const kept = named === undefined ? fields : without(fields, named);
  exchange.pushOwnFields(kept);
  return { fields: kept, length };
}

function isReplaced(name: string): boolean {
  return REPLACED.has(name);
}

function isReplacedOrCors(name: string): boolean {
  return REPLACED.has(name) || CORS_FIELDS.has(name);
}

/** The fields of an interim answer: only what is not bound to this hop. */
export function interimFields(raw: readonly Buffer[]): string[] {
  const fields: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]?.toString('latin1') ?? '';
    const lower = name.toLowerCase();
    if (REPLACED.has(lower) || lower === 'content-length') continue;
    fields.push(name, raw[i + 1]?.toString('latin1') ?? '');
  }
  return fields;
}

function without(fields: readonly string[], named: ReadonlySet<string>): string[] {
  return fields.filter((_, i) => !named.has((fields[i - (i % 2)] ?? '').toLowerCase()));
}
