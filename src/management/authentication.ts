import type { BlockList } from 'node:net';
import type { ErrorRequestHandler, Request, RequestHandler } from 'express';
import { missingScope, ROOT } from '../admins/principal.ts';
import { addressFault, type TokenAuthenticator } from '../admins/token-authenticator.ts';
import type { AuditLog } from '../audit/audit-log.ts';
import type { ChangeContext } from '../audit/change-context.ts';
import { InvalidToken, MissingScope, MissingToken, TollgateError } from '../errors.ts';
import { clientAddress } from '../http/client-address.ts';
import { readBearer } from '../http/credentials/bearer.ts';
import type { FailedCredentials } from '../http/credentials/failed-credentials.ts';
import { RootTokens } from '../http/credentials/root-token.ts';
import { errorResponse } from '../http/errors/error-responses.ts';
import type { Endpoint } from './endpoint.ts';
import { notePrincipal, principalOf } from './principal-of.ts';
import type { ChangeContextReader } from './read-change-context.ts';

/** What credentials are checked against. */
export interface Credentials {
  /** All of them are valid. Each is token68 (RFC 9110 11.2) of at least 32 characters. */
  readonly rootTokens: readonly string[];
  readonly adminTokens: Pick<TokenAuthenticator, 'authenticate'>;
  /** Limits how often an address may fail to authenticate. */
  readonly failedCredentials: FailedCredentials;
}

/**
 * Finds out who makes the request. A root token is checked without a store. Throws `missing_root_token` or `invalid_root_token`, and
 * `bad_request` for several `Authorization` headers, because programs differ in which of them they use.
 */
export function authenticate({ rootTokens, adminTokens, failedCredentials }: Credentials): RequestHandler {
  const roots = new RootTokens(rootTokens);
  return async (req, res, next) => {
    const token = readToken(req);
    const principal =
      token === undefined ? undefined : roots.includes(token) ? ROOT : await adminTokens.authenticate(token);
    if (principal === undefined) {
      throw failedCredentials.errorFor(req, new InvalidToken());
    }
    notePrincipal(res, principal);
    next();
  };
}

/** The bearer token; undefined if the header does not have the form of one. */
function readToken(req: Request): string | undefined {
  const authorizations = req.headersDistinct.authorization ?? [];
  if (authorizations.length > 1) {
    throw new TollgateError('bad_request', 'The request has more than one Authorization header.');
  }
  const credential = readBearer(authorizations[0]);
  if (credential.kind === 'missing') throw new MissingToken();
  return credential.kind === 'token' ? credential.token : undefined;
}

/** Rejects principals that lack the scope of the endpoint, or may not use it from their address. */
export function authorize({ scope }: Endpoint, trustedProxies: BlockList): RequestHandler {
  return (req, res, next) => {
    const principal = principalOf(res);
    const fault = addressFault(principal, clientAddress(req, trustedProxies));
    if (fault !== undefined) throw fault;
    const missing = missingScope(principal, scope);
    if (missing !== undefined) throw new MissingScope(missing);
    next();
  };
}

/** Limits how often a client may guess keys, if the endpoint requires that. */
export function limitGuesses(
  { limitsGuesses }: Endpoint,
  failedCredentials: FailedCredentials | undefined,
): ErrorRequestHandler {
  return (error: unknown, req, _res, next) => {
    const isGuess = limitsGuesses && error instanceof TollgateError && error.code === 'key_not_found';
    next(isGuess ? (failedCredentials?.errorFor(req, error) ?? error) : error);
  };
}

/** Consumers are many and not trusted: with an entry for each rejection they would fill the log. */
const CONSUMER_ENTRY_EVERY_MS = 3_600_000;

/**
 * Writes an entry into the audit log for each request of a principal that is rejected with 403, of a consumer about one an hour, and passes
 * the error on.
 */
export function auditForbidden(
  { operationId }: Endpoint,
  { audit, changeOf }: { readonly audit: AuditLog; readonly changeOf: ChangeContextReader },
): ErrorRequestHandler {
  return async (error: unknown, req, res, _next) => {
    if (error instanceof TollgateError && errorResponse(error).status === 403) {
      const target = { type: 'operation', id: operationId, name: pathParameter(req), tags: [] } as const;
      const action = { action: 'request.deny', target, changes: {}, outcome: error.code } as const;
      const change = changeOf(req, res);
      if (!(await isRepeatedByConsumer(audit, change))) await audit.record(action, change);
    }
    throw error;
  };
}

async function isRepeatedByConsumer(audit: AuditLog, { actor, atMs }: ChangeContext): Promise<boolean> {
  if (actor.type !== 'key' || actor.id === null) return false;
  const fromMs = atMs - CONSUMER_ENTRY_EVERY_MS;
  return (await audit.count({ action: 'request.deny', actorId: actor.id, fromMs })) > 0;
}

/** The id in the path. Null for text that can't be an id: the audit log must not keep arbitrary text of clients. */
function pathParameter({ params }: Request): string | null {
  const [text = ''] = Object.values(params).flat();
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text) ? text : null;
}
