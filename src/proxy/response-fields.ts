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

const CODING = 'transfer-encoding';

/**
 * Whether it is certain where the body of an answer in HTTP/1.`httpMinor` ends: without a transfer coding, or with exactly one `chunked`,
 * which HTTP/1.0 does not have (RFC 9112 section 6.1). Undefined: it is another protocol.
 */
export function isFramingKnown(raw: readonly Buffer[], httpMinor: number | undefined): boolean {
  // As many as its minor version says: one, or none.
  let codingsLeft = httpMinor;
  for (let i = 0; i < raw.length; i += 2) {
    if (raw[i]?.length !== CODING.length || raw[i]?.toString('latin1').toLowerCase() !== CODING) continue;
    if (codingsLeft !== 1 || raw[i + 1]?.toString('latin1').toLowerCase() !== 'chunked') return false;
    codingsLeft = 0;
  }
  return codingsLeft !== undefined;
}

/** The fields of the answer to the client, in one pass over the backend's: case, order and repetition kept, then ours. */
export function responseFields(raw: readonly Buffer[], status: number, exchange: Exchange): ResponseFields {
  const fields: string[] = [];
  const ends: string[] = [];
  const isOurs = exchange.isOriginAllowed ? isReplacedOrCors : isReplaced;
  let length: number | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]?.toString('latin1') ?? '';
    const value = raw[i + 1]?.toString('latin1') ?? '';
    const lower = name.toLowerCase();
    if (isOurs(lower)) {
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
