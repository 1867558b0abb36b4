// The room `management`: the management interface, with one file for each resource: route, schema and response.
// In: requests for reserved paths.
// Out: JSON from the services of the other rooms, the OpenAPI document, and the files of the console.

import type { BlockList } from 'node:net';
import type { ParsedUrlQuery } from 'node:querystring';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Express, Request, RequestHandler, Response } from 'express';
import express from 'express';
import { TollgateError } from '../errors.ts';
import type { BodyBudget } from '../http/body-budget.ts';
import type { CheckBody } from '../http/body-schema.ts';
import type { FailedCredentials } from '../http/credentials/failed-credentials.ts';
import { errorHandler } from '../http/errors/error-handler.ts';
import { MethodNotAllowed } from '../http/errors/method-not-allowed.ts';
import { jsonBody } from '../http/json-body.ts';
import type { RequestNotes } from '../http/with-request-id.ts';
import type { IdempotentRequests, KeptResponse } from '../idempotency/idempotent-requests.ts';
import { APPLIES_WITHIN_S } from '../limiter/changes/change-versions.ts';
import { resembledManagementPath } from '../paths/path-matcher.ts';
import { nameHint, shownName } from '../platform/text/did-you-mean.ts';
import type { People } from '../sign-in/people.ts';
import { auditForbidden } from './audit/forbidden-requests.ts';
import { noteTakenSecrets } from './audit/taken-secrets.ts';
import { authenticate, authorize, type Credentials, limitGuesses } from './authentication.ts';
import { bodyCheck } from './body-check.ts';
import { CONSOLE_PATH, createConsoleApp, type WaysToSignIn } from './console-files.ts';
import { type Endpoint, type ManagementServices, Reply, type ServicesFor, StreamedText } from './endpoint.ts';
import { ENDPOINTS, SIGN_IN_ENDPOINTS } from './endpoints.ts';
import { readExpectation } from './entity-tag.ts';
import { readIdempotencyKey, respondOnce } from './idempotency.ts';
import { principalOf } from './principal-of.ts';
import { type ChangeContextReader, readChangeContext, rejectLongReason } from './read-change-context.ts';
import { setSecurityHeaders } from './security-headers.ts';
import { createSignInApp, SIGN_IN_PATH } from './sign-in/sign-in-app.ts';
import { whileUnchanged } from './unchanged-principal.ts';

/** The services and credentials of the management interface. */
export interface ManagementOptions extends ManagementServices {
  readonly credentials: Credentials;
  /** Proxies that are trusted to report the client's address. */
  readonly trustedProxies: BlockList;
  /** Stores the responses to requests with an `Idempotency-Key`. */
  readonly idempotency: IdempotentRequests<ServicesFor>;
  /** Bounds the large bodies of all apps of the process. */
  readonly bodyBudget: BodyBudget;
  /** The services for a request outside of a unit of work. */
  readonly servicesFor: ServicesFor;
  /** Sign-in with an identity provider; undefined: there is none. */
  readonly people?: People | undefined;
  /** The directory that the console was built into; undefined = there is no console. */
  readonly consoleDirectory?: string | undefined;
}

/** As in the proxy, paths that differ in case or by a slash at the end are different paths. */
export const EXACT_PATHS = { caseSensitive: true, strict: true } as const;

/**
 * The management interface as an Express app. It responds to every request itself. It rejects an unknown path (404) or method (405) first,
 * then wrong credentials, then a wrong query or body; only then the endpoint's handler runs.
 */
export function createManagementApp({
  credentials,
  trustedProxies,
  idempotency,
  bodyBudget,
  servicesFor,
  people,
  consoleDirectory,
  ...services
}: ManagementOptions): Express {
  const authenticated = authenticate(credentials);
  const { failedCredentials } = credentials;
  const consoleFiles =
    consoleDirectory === undefined
      ? undefined
      : createConsoleApp(consoleDirectory, waysToSignIn(credentials, people));
  const hasConsole = consoleFiles !== undefined;
  const { clock } = services;
  const signIn = people && createSignInApp({ people, trustedProxies, bodyBudget, clock, hasConsole });
  const pages = express.Router(EXACT_PATHS);
  if (consoleFiles !== undefined) pages.use(CONSOLE_PATH, consoleFiles);
  if (signIn !== undefined) pages.use(SIGN_IN_PATH, signIn);
  const endpoints = people === undefined ? ENDPOINTS : [...ENDPOINTS, ...SIGN_IN_ENDPOINTS];
  return createEndpointApp(endpoints, {
    ...{ authenticated, failedCredentials, services, trustedProxies, idempotency, bodyBudget, servicesFor },
    pages,
  });
}

/** Undefined: with any token, and in no other way. */
function waysToSignIn(
  { rootTokenSignIn }: Credentials,
  people: People | undefined,
): WaysToSignIn | undefined {
  if (people === undefined && rootTokenSignIn === 'on') return undefined;
  return { providerHost: people?.providerHost, rootTokenSignIn };
}

/** The parts of an app of endpoints. */
export interface EndpointAppOptions
  extends Pick<ManagementOptions, 'trustedProxies' | 'idempotency' | 'bodyBudget' | 'servicesFor'> {
  /** Authenticates the request, and calls `notePrincipal`. */
  readonly authenticated: RequestHandler;
  /** Limits how often a client may guess secrets; undefined = no limit. */
  readonly failedCredentials?: FailedCredentials;
  readonly services: ManagementServices;
  /** Serves the pages, and passes on all other requests; undefined = there are none. */
  readonly pages?: RequestHandler;
}

/** An Express app of these endpoints and, if there are any, of pages. */
export function createEndpointApp(
  all: readonly Endpoint[],
  {
    authenticated,
    failedCredentials,
    services,
    trustedProxies,
    idempotency,
    bodyBudget,
    servicesFor,
    pages,
  }: EndpointAppOptions,
): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  // As in the proxy, paths that differ in case or by a slash at the end are different paths.
  app.enable('case sensitive routing');
  app.enable('strict routing');

  app.use(setSecurityHeaders);
  if (pages !== undefined) app.use(pages);
  const changeOf = (req: Request, res: Response) =>
    readChangeContext(req, res, { clock: services.clock, trustedProxies });
  const { imports, audit } = services;
  for (const [path, endpoints] of Map.groupBy(all, ({ path }) => path)) {
    const route = app.route(path.replaceAll(/\{(\w+)\}/g, ':$1'));
    route.all(rejectOtherMethods(endpoints, all), authenticated);
    for (const endpoint of endpoints) {
      const { body, bodyLimitBytes } = endpoint;
      const authorized = authorize(endpoint, trustedProxies);
      const readBody =
        body === undefined
          ? []
          : [
              ...ifBodyComesLater(jsonBody(bodyBudget, bodyLimitBytes), [authenticated, authorized]),
              checkBody(bodyCheck(body)),
            ];
      route[endpoint.method](
        noteOperation(endpoint),
        authorized,
        checkQuery(endpoint),
        ...readBody,
        noteTakenSecrets(endpoint, { imports, audit, failedCredentials, changeOf }),
        respond(endpoint, { log: services.log, servicesFor, changeOf, idempotency }),
        limitGuesses(endpoint, failedCredentials),
        auditForbidden(endpoint, { audit, changeOf }),
      );
    }
  }
  app.use(rejectUnknownPath, errorHandler(services.log, services.clock));
  return app;
}

const rejectUnknownPath: RequestHandler = (req) => {
  throw new TollgateError('not_found', `There is no such endpoint.${pathHint(req.path)}`);
};

function pathHint(path: string): string {
  const meant = resembledManagementPath(path);
  if (meant !== undefined) return ` Did you mean ${meant}?`;
  return path.endsWith('/') ? ' Paths have no slash at their end.' : '';
}

function rejectOtherMethods(endpoints: readonly Endpoint[], all: readonly Endpoint[]): RequestHandler {
  const creation = all.find(({ path }) => path === `${endpoints[0]?.path}/create`);
  return (req, _res, next) => {
    const fault = methodFault(endpoints, req.method);
    if (fault === undefined) next();
    else if (req.method !== 'POST' || creation === undefined) throw fault;
    else throw new MethodNotAllowed(fault.allowed, `${fault.message} POST ${creation.path} creates one.`);
  };
}

/** The error for a method that no endpoint of a path has; undefined if one has it. */
export function methodFault(endpoints: readonly Endpoint[], method: string): MethodNotAllowed | undefined {
  const methods = endpoints.map((endpoint) => endpoint.method.toUpperCase());
  const allowed = methods.includes('GET') ? ['HEAD', ...methods] : methods;
  allowed.sort();
  if (allowed.includes(method)) return undefined;
  return new MethodNotAllowed(allowed, `This endpoint responds only to ${allowed.join(', ')}.`);
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

/**
 * Reads a body, and repeats these checks if it had not arrived before them: a client may hold its body back for minutes, in which its
 * credential may be deleted.
 */
function ifBodyComesLater(
  read: readonly RequestHandler[],
  checks: readonly RequestHandler[],
): readonly RequestHandler[] {
  const late = new WeakSet<Request>();
  const noteLate: RequestHandler = (req, _res, next) => {
    if (!req.complete) late.add(req);
    next();
  };
  const repeated = checks.map(
    (check): RequestHandler =>
      (req, res, next) =>
        late.has(req) ? check(req, res, next) : next(),
  );
  return [noteLate, ...read, ...repeated];
}

function checkBody(check: CheckBody): RequestHandler {
  return async (req, _res, next) => {
    // A list of hundreds of keys takes long to parse and to check, which would delay other requests if done at once.
    await nextTurn();
    check(req.body);
    next();
  };
}

interface RespondOptions extends Pick<ManagementOptions, 'idempotency' | 'servicesFor' | 'log'> {
  readonly changeOf: ChangeContextReader;
}

function respond(endpoint: Endpoint, { log: parentLog, servicesFor, changeOf, idempotency }: RespondOptions) {
  return async (req: Request, res: Response): Promise<void> => {
    const [id = '', subId = ''] = Object.values(req.params).flat();
    const prefers = (types: readonly string[]) => req.accepts([...types]) || undefined;
    const { requestId, actor } = res.locals as RequestNotes;
    const log = parentLog.child({ requestId, actor });
    const expects = endpoint.conditional ? readExpectation(req) : undefined;
    const principal = principalOf(res);
    rejectLongReason(req);
    const change = { ...changeOf(req, res), expects };
    const isHead = req.method === 'HEAD';
    const header = (name: string) => req.get(name);
    const call = {
      id,
      subId,
      query: queryOf(req),
      header,
      body: req.body,
      isHead,
      prefers,
      principal,
      change,
    };
    // Says in the response when a change of the request is not in force with the next request.
    const onDeferred = () => void res.set('Tollgate-Applies-Within', String(APPLIES_WITHIN_S));
    const checked = endpoint.check?.(call, { ...servicesFor(onDeferred), log });
    await Promise.allSettled([checked]);
    const handle = async (servicesIn: ServicesFor, operationId?: string) => {
      await checked;
      return endpoint.handle({ ...call, operationId }, { ...servicesIn(onDeferred), log });
    };
    const idempotencyKey =
      endpoint.method === 'post' && !endpoint.forHolders ? readIdempotencyKey(req) : undefined;
    if (idempotencyKey !== undefined) {
      const perform = async (operationId: string, servicesInUnit?: ServicesFor) =>
        completed(endpoint, await handle(servicesInUnit ?? servicesFor, operationId));
      return respondOnce(req, res, { requests: idempotency, endpoint, principal, idempotencyKey, perform });
    }
    const result = await handle(servicesFor);
    if (endpoint.csv || endpoint.yaml) res.vary('Accept');
    // The end of the response, at which the rest of a body is read otherwise, may be hours away. An unread one hides that its client has left.
    if (endpoint.eventStream) req.resume();
    if (result instanceof StreamedText) {
      res.status(endpoint.status).type(result.contentType).set(result.headers);
      // A stream of events checks its principal itself.
      if (endpoint.eventStream) return stream(result.chunks, res);
      return stream(whileUnchanged(result.chunks, principal, servicesFor(onDeferred)), res);
    }
    const { status, headers, body } = completed(endpoint, result);
    // Express would respond with 304 to a condition that holds. A tag covers neither usage nor last uses.
    Object.defineProperty(req, 'fresh', { value: false });
    res.status(status).set(headers).json(body);
  };
}

/** The complete response for the result of a handler that is not streamed. */
function completed({ status }: Endpoint, result: object): KeptResponse {
  if (!(result instanceof Reply)) return { status, headers: {}, body: result };
  return { status: result.isCreated ? 201 : status, headers: result.headers, body: result.body };
}

/** The simple query parser gives a text for each parameter, and a list for a repeated one. */
function queryOf(req: Request): ParsedUrlQuery {
  return req.query as ParsedUrlQuery;
}

async function stream(chunks: StreamedText['chunks'], res: Response): Promise<void> {
  const body = Readable.from(chunks);
  try {
    await pipeline(body, res);
  } catch (error) {
    // If the client has disconnected, the failure is not ours.
    if (!res.destroyed) throw error;
  } finally {
    // A client that had left before keeps its chunks otherwise: a pipeline to a closed response ends nothing.
    body.destroy();
  }
}

/** Throws `invalid_parameter` for a query parameter that the endpoint does not have. The message suggests the nearest known name. */
function rejectUnknownParameters(query: ParsedUrlQuery, known: readonly string[]): void {
  const unknown = Object.keys(query).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const hint = known.length === 0 ? 'This endpoint takes none.' : nameHint(unknown, known);
  throw new TollgateError(
    'invalid_parameter',
    `The query parameter "${shownName(unknown)}" is unknown. ${hint}`,
  );
}
