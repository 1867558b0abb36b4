import type { IncomingMessage } from 'node:http';
import { TollgateError } from '../errors.ts';
import { neverForwarded } from '../http/errors/method-not-allowed.ts';
import type { RequestTarget } from '../http/parsed-request.ts';
import { KNOWN_METHODS, mayBeHost } from '../server/parsing/parse-request.ts';
import { readTarget } from '../server/parsing/request-target.ts';

/** The request that another gateway asks about. */
export interface OriginalRequest {
  readonly method: string;
  readonly target: RequestTarget;
}

/** Where a gateway puts the original request. */
interface FieldDialect {
  readonly method: string;
  readonly target: string;
  /** The part of the field that is the path and query; undefined where the field is malformed. */
  readonly pathIn: (value: string) => string | undefined;
}

/** The path below which the dialects are. */
export const AUTHORIZE_PATH = '/authorize';

/** Of which fields a gateway's own proxies write the original request, by the name of the dialect. */
const FIELD_DIALECTS: ReadonlyMap<string, FieldDialect> = new Map([
  ['original', { method: 'X-Original-Method', target: 'X-Original-URI', pathIn: (path: string) => path }],
  ['original-url', { method: 'X-Original-Method', target: 'X-Original-URL', pathIn: absoluteForm }],
  ['forwarded', { method: 'X-Forwarded-Method', target: 'X-Forwarded-Uri', pathIn: (path: string) => path }],
]);

/** In this dialect the original path follows, and the method is the call's own. */
const PATH_DIALECT = 'envoy';

export const DIALECTS: readonly string[] = [...FIELD_DIALECTS.keys(), PATH_DIALECT];

/** A call of a gateway, as far as its target describes it. */
export interface AuthorizeCall {
  /** The fields with the original request; undefined where it is the call itself. */
  readonly fields: FieldDialect | undefined;
  /** The original target behind the prefix; empty where it is in fields. */
  readonly rest: string;
  /** Every rejection but 401 is to be a 403. */
  readonly isRejectedAs403: boolean;
}

const ENVOY_PREFIX = `${AUTHORIZE_PATH}/${PATH_DIALECT}`;
const REJECTED_AS_403 = '?rejected=403';

/** The calls without and with `?rejected=403` to the dialects with fields, by their targets. */
const FIELD_CALLS: ReadonlyMap<string, AuthorizeCall> = new Map(
  [...FIELD_DIALECTS].flatMap(([name, fields]) =>
    ['', REJECTED_AS_403].map((query): [string, AuthorizeCall] => [
      `${AUTHORIZE_PATH}/${name}${query}`,
      { fields, rest: '', isRejectedAs403: query !== '' },
    ]),
  ),
);

/**
 * The call that a target (origin form, with its query) makes. Another query than ours is ignored: Caddy leaves in that of the consumer. Only the administrator of the other gateway chooses it: what a consumer sent
 * is behind Envoy's prefix, or in fields. Undefined for a target that is none.
 */
export function authorizeCallOf(target: string): AuthorizeCall | undefined {
  const known = FIELD_CALLS.get(target) ?? FIELD_CALLS.get(target.split('?', 1)[0] ?? '');
  if (known !== undefined) return known;
  if (!target.startsWith(ENVOY_PREFIX)) return undefined;
  const rest = target.slice(ENVOY_PREFIX.length);
  // Another prefix such as /authorize/envoy2 is no dialect; `*` is the target of OPTIONS.
  return /^[A-Za-z0-9_-]/.test(rest) ? undefined : { fields: undefined, rest, isRejectedAs403: false };
}

/** The original request of a call, or why it is none: a field is missing, repeated or malformed, or the proxy would reject it. */
export function readOriginal(
  { fields, rest }: AuthorizeCall,
  { method = '', rawHeaders }: Pick<IncomingMessage, 'method' | 'rawHeaders'>,
): OriginalRequest | TollgateError {
  if (fields === undefined) return withTarget(method, 'The path', rest);
  const original = fieldValue(rawHeaders, fields.method);
  if (original instanceof TollgateError) return original;
  if (!KNOWN_METHODS.has(original)) return invalid(`${fields.method} names no known method in capitals.`);
  if (original === 'TRACE' || original === 'CONNECT') return neverForwarded(original);
  const value = fieldValue(rawHeaders, fields.target);
  if (value instanceof TollgateError) return value;
  return withTarget(original, fields.target, fields.pathIn(value));
}

const VISIBLE = /^[\x21-\x7e]+$/;

/** `name` says where the path was. */
function withTarget(method: string, name: string, path: string | undefined): OriginalRequest | TollgateError {
  if (path === undefined || !path.startsWith('/') || !VISIBLE.test(path))
    return invalid(`${name} is malformed: it must be a path with its query, as the client sent it.`);
  const target = readTarget(path);
  return target instanceof TollgateError
    ? invalid(`${name} is rejected. ${target.message}`)
    : { method, target };
}

function fieldValue(rawHeaders: readonly string[], name: string): string | TollgateError {
  const lower = name.toLowerCase();
  let value: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const given = rawHeaders[i] ?? '';
    if (given.length !== lower.length || given.toLowerCase() !== lower) continue;
    if (value !== undefined) return invalid(`There is more than one ${name} field.`);
    value = rawHeaders[i + 1] ?? '';
  }
  return value ?? invalid(`The field ${name} is missing.`);
}

const ABSOLUTE = /^https?:\/\/([^/]*)(\/.*)$/i;

/** Between host and path there must be a slash: a consumer chooses the Host, and `a?` would hide the path in a query. */
function absoluteForm(value: string): string | undefined {
  const [, host, path] = ABSOLUTE.exec(value) ?? [];
  return host !== undefined && mayBeHost(host) ? path : undefined;
}

function invalid(sentence: string): TollgateError {
  return new TollgateError('original_request_invalid', sentence);
}
