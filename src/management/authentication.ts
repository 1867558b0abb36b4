import type { BlockList } from 'node:net';
import type { ErrorRequestHandler, Request, RequestHandler } from 'express';
import { addressFault, type TokenAuthenticator } from '../admins/token-authenticator.ts';
import { InvalidToken, MissingScope, MissingToken, RootTokenOff, TollgateError } from '../errors.ts';
import { clientAddress } from '../http/client-address.ts';
import { readBearer } from '../http/credentials/bearer.ts';
import type { FailedCredentials } from '../http/credentials/failed-credentials.ts';
import { RootTokens } from '../http/credentials/root-token.ts';
import { cookieIn, SESSION_COOKIE } from '../http/credentials/session-cookie.ts';
import { missingScope, type Principal, ROOT } from '../permissions/principal.ts';
import { authenticateBearer, type People } from '../sign-in/people.ts';
import type { Endpoint } from './endpoint.ts';
import { notePrincipal, principalOf } from './principal-of.ts';
import { CONSOLE_HEADER, requireConsole } from './sign-in/request-origin.ts';

/** What credentials are checked against. */
export interface Credentials {
  /** All of them are valid. Each is token68 (RFC 9110 11.2) of at least 32 characters. */
  readonly rootTokens: readonly string[];
  readonly adminTokens: Pick<TokenAuthenticator, 'authenticate'>;
  /** Undefined: no identity provider is set. */
  readonly people?: Pick<People, 'sessions' | 'accessTokens' | 'publicOrigin'> | undefined;
  /** Whether a root token may be used in a browser. */
  readonly rootTokenSignIn: 'on' | 'off';
  /** Limits how often an address may fail to authenticate. */
  readonly failedCredentials: FailedCredentials;
}

/**
 * Finds out who makes the request. A root token is checked without a store. Throws `missing_root_token` or `invalid_root_token`, and
 * `bad_request` for several `Authorization` headers, because programs differ in which of them they use.
 */
export function authenticate(credentials: Credentials): RequestHandler {
  const { failedCredentials, people, rootTokenSignIn } = credentials;
  const findByToken = tokenFinder(credentials);
  return async (req, res, next) => {
    const secret = people && cookieOf(req);
    const principal =
      people === undefined || secret === undefined
        ? await findByToken(req)
        : await people.sessions.authenticate(secret, 'browser', failedCredentials.clientOf(req));
    if (principal === undefined) throw failedCredentials.errorFor(req, new InvalidToken());
    // Before the faults: the audit log says whose credential it was.
    notePrincipal(res, principal);
    if (people !== undefined && secret !== undefined) requireConsole(req, people.publicOrigin);
    if (principal.type === 'root' && rootTokenSignIn === 'off' && isFromBrowser(req))
      throw new RootTokenOff();
    next();
  };
}

/** The secret of the session in the cookie. A browser adds the cookie to whatever it sends, so `Authorization` comes first. */
function cookieOf({ headers }: Request): string | undefined {
  return headers.authorization === undefined ? cookieIn(headers.cookie, SESSION_COOKIE) : undefined;
}

function tokenFinder({ rootTokens, adminTokens, failedCredentials, people }: Credentials) {
  const roots = new RootTokens(rootTokens);
  return async (req: Request): Promise<Principal | undefined> => {
    const token = readToken(req);
    if (token === undefined) return undefined;
    if (roots.includes(token)) return ROOT;
    const client = failedCredentials.clientOf(req);
    const found = people && authenticateBearer(people, token, client);
    return found ?? adminTokens.authenticate(token, client);
  };
}

/** Browsers send the first header with each request to a secure origin, and no page can leave it out. The console always sends the other one. */
function isFromBrowser({ headers }: Request): boolean {
  return headers['sec-fetch-site'] !== undefined || headers[CONSOLE_HEADER] !== undefined;
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
