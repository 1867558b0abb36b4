import type { BlockList } from 'node:net';
import type { ParsedUrlQuery } from 'node:querystring';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import { missingScope, type Principal, ROOT } from '../admins/principal.ts';
import { MissingScope, TollgateError } from '../errors.ts';
import { type CheckBody, createBodyCompiler } from '../http/body-schema.ts';
import { errorHandler } from '../http/error-handler.ts';
import type { FailedCredentials } from '../http/failed-credentials.ts';
import { jsonBody } from '../http/json-body.ts';
import { MethodNotAllowed } from '../http/method-not-allowed.ts';
import { resembledManagementPath } from '../http/reserved-paths.ts';
import { RootTokens } from '../http/root-token.ts';
import type { RequestNotes } from '../http/with-request-id.ts';
import { changeOfRequest } from './change-of-request.ts';
import { type Endpoint, type ManagementServices, Reply, StreamedText } from './endpoint.ts';
import { ENDPOINTS } from './endpoints.ts';
import { readExpectation } from './entity-tag.ts';
import { BODY_FORMAT_FAULTS, BODY_FORMATS } from './formats.ts';
import { rejectUnknownParameters } from './unknown-parameters.ts';

/** What the management interface works with, and the tokens that open it. */
export interface ManagementOptions extends ManagementServices {
  /** All are valid. Each at least 32 characters of token68. */
  readonly rootTokens: readonly string[];
  /** Limits how often an address may fail to authenticate; undefined = no limit. */
  readonly failedCredentials?: FailedCredentials;
  /** Proxies whose word on a client's address counts. */
  readonly trustedProxies: BlockList;
}

/**
 * The management interface as an Express app. It responds to every request itself, in JSON unless CSV was asked for: an unknown path (404) or method (405) first,
 * then wrong credentials, then a wrong body, and only then the endpoint.
 */
export function createManagementApp({
  rootTokens,
  failedCredentials,
  trustedProxies,
  ...services
}: ManagementOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  // Another spelling of a path is another path, here as in the proxy.
  app.enable('case sensitive routing');
  app.enable('strict routing');

  app.use(setSafetyHeaders);
  const authenticate = requireRootToken(new RootTokens(rootTokens), failedCredentials);
  const compile = createBodyCompiler(BODY_FORMATS, BODY_FORMAT_FAULTS);
  for (const [path, endpoints] of Map.groupBy(ENDPOINTS, ({ path }) => path)) {
    const route = app.route(path.replaceAll(/\{(\w+)\}/g, ':$1'));
    route.all(rejectOtherMethods(endpoints), authenticate);
    for (const endpoint of endpoints) {
      const readBody = endpoint.body === undefined ? [] : [...jsonBody(), checkBody(compile(endpoint.body))];
      route[endpoint.method](
        noteOperation(endpoint),
        requireScope(endpoint),
        checkQuery(endpoint),
        ...readBody,
        respond(endpoint, { services, trustedProxies }),
      );
    }
  }
  app.use(rejectUnknownPath, errorHandler(services.log));
  return app;
}

/** Responses hold secrets and counts of the moment, and are never to be taken for anything but their type. */
const setSafetyHeaders: RequestHandler = (_req, res, next) => {
  res.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' });
  next();
};

const rejectUnknownPath: RequestHandler = (req) => {
  const meant = resembledManagementPath(req.path);
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
  throw new TollgateError('not_found', `There is no such endpoint.${hint}`);
};

function rejectOtherMethods(endpoints: readonly Endpoint[]): RequestHandler {
  const methods = endpoints.map(({ method }) => method.toUpperCase());
  const allowed = methods.includes('GET') ? ['HEAD', ...methods] : methods;
  allowed.sort();
  return (req, _res, next) => {
    if (allowed.includes(req.method)) return next();
    throw new MethodNotAllowed(allowed, `This endpoint responds only ${allowed.join(', ')}.`);
  };
}

function requireRootToken(
  rootTokens: RootTokens,
  failedCredentials: FailedCredentials | undefined,
): RequestHandler {
  return (req, res, next) => {
    try {
      rootTokens.authenticate(req.headersDistinct.authorization ?? []);
    } catch (error) {
      const isGuess = error instanceof TollgateError && error.code === 'invalid_root_token';
      throw isGuess ? (failedCredentials?.errorFor(req, error) ?? error) : error;
    }
    authenticated(res, ROOT);
    next();
  };
}

/** What is known of a request after its authentication, beside the notes for the log. */
interface AuthenticatedLocals extends RequestNotes {
  principal?: Principal;
}

function authenticated(res: Response, principal: Principal): void {
  const locals = res.locals as AuthenticatedLocals;
  locals.principal = principal;
  locals.actor = principal.name;
}

/** Throws for a request that passed no authentication: a fault of ours must not open an endpoint. */
function principalOf(res: Response): Principal {
  const { principal } = res.locals as AuthenticatedLocals;
  if (principal === undefined) throw new Error('The request was not authenticated.');
  return principal;
}

function requireScope({ scope }: Endpoint): RequestHandler {
  return (_req, res, next) => {
    const missing = missingScope(principalOf(res), scope);
    if (missing !== undefined) throw new MissingScope(missing);
    next();
  };
}

function noteOperation({ operationId }: Endpoint): RequestHandler {
  return (_req, res, next) => {
    (res.locals as RequestNotes).operation = operationId;
    next();
  };
}

function checkQuery({ query = {} }: Endpoint): RequestHandler {
  const known = Object.keys(query);
  return (req, _res, next) => {
    rejectUnknownParameters(queryOf(req), known);
    next();
  };
}

function checkBody(check: CheckBody): RequestHandler {
  return (req, _res, next) => {
    check(req.body);
    next();
  };
}

function respond(
  endpoint: Endpoint,
  { services, trustedProxies }: { readonly services: ManagementServices; readonly trustedProxies: BlockList },
): RequestHandler {
  return async (req, res) => {
    const [id = ''] = Object.values(req.params).flat();
    const prefers = (types: readonly string[]) => req.accepts([...types]) || undefined;
    const { requestId, actor } = res.locals as RequestNotes;
    const log = services.log.child({ requestId, actor });
    const principal = principalOf(res);
    const expects = endpoint.conditional ? readExpectation(req) : undefined;
    const change = changeOfRequest(req, res, { principal, expects, clock: services.clock, trustedProxies });
    const call = { id, query: queryOf(req), body: req.body, prefers, principal, change };
    const result = await endpoint.handle(call, { ...services, log });
    res.status(endpoint.status);
    if (endpoint.csv) res.vary('Accept');
    if (result instanceof StreamedText) await stream(result, res);
    else if (result instanceof Reply) sendReply(res, result);
    else res.json(result);
  };
}

function sendReply(res: Response, { isCreated, headers, body }: Reply): void {
  if (isCreated) res.status(201);
  res.set(headers).json(body);
}

/** The simple query parser gives texts, and lists of them for what is repeated. */
function queryOf(req: Request): ParsedUrlQuery {
  return req.query as ParsedUrlQuery;
}

async function stream({ contentType, chunks }: StreamedText, res: Response): Promise<void> {
  res.type(contentType);
  try {
    await pipeline(Readable.from(chunks), res);
  } catch (error) {
    // A client that left is no failure of ours.
    if (!res.destroyed) throw error;
  }
}
