import type { BlockList } from 'node:net';
import type { ErrorRequestHandler, Request, RequestHandler } from 'express';
import { missingScope, type Principal, ROOT } from '../admins/principal.ts';
import { addressFault, type TokenAuthenticator } from '../admins/token-authenticator.ts';
import { InvalidToken, MissingScope, MissingToken, TollgateError } from '../errors.ts';
import { clientAddress } from '../http/client-address.ts';
import { readBearer } from '../http/credentials/bearer.ts';
import type { FailedCredentials } from '../http/credentials/failed-credentials.ts';
import { RootTokens } from '../http/credentials/root-token.ts';
import type { Endpoint } from './endpoint.ts';
import { notePrincipal, principalOf } from './principal-of.ts';

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
  const find = async (req: Request): Promise<Principal | undefined> => {
    const token = readToken(req);
    if (token === undefined) return undefined;
    return roots.includes(token) ? ROOT : adminTokens.authenticate(token, failedCredentials.clientOf(req));
  };
  return async (req, res, next) => {
    const principal = await find(req);
    if (principal === undefined) throw failedCredentials.errorFor(req, new InvalidToken());
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

/** Limits how often a client may guess secrets, if the endpoint requires that. */
export function limitGuesses(
  { limitsGuesses }: Endpoint,
  failedCredentials: FailedCredentials | undefined,
): ErrorRequestHandler {
  return (error: unknown, req, _res, next) => {
    const isGuess = limitsGuesses && error instanceof TollgateError && error.code === limitsGuesses;
    next(isGuess ? (failedCredentials?.errorFor(req, error) ?? error) : error);
  };
}
