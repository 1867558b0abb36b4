import type { ParsedUrlQuery } from 'node:querystring';
import express, { type Express, type RequestHandler } from 'express';
import { TollgateError } from '../errors.ts';
import { type CheckBody, createBodyCompiler } from '../http/body-schema.ts';
import { errorHandler } from '../http/error-handler.ts';
import type { FailedCredentials } from '../http/failed-credentials.ts';
import { jsonBody } from '../http/json-body.ts';
import { MethodNotAllowed } from '../http/method-not-allowed.ts';
import { RootTokens } from '../http/root-token.ts';
import type { Endpoint, ManagementServices } from './endpoint.ts';
import { ENDPOINTS } from './endpoints.ts';
import { BODY_FORMATS } from './formats.ts';

/** What the management interface works with, and the tokens that open it. */
export interface ManagementOptions extends ManagementServices {
  /** All are valid. Each at least 32 characters of token68. */
  readonly rootTokens: readonly string[];
  /** Bounds how often an address is told that its token is wrong; undefined = not at all. */
  readonly failedCredentials?: FailedCredentials;
}

/**
 * The management interface as an Express app. It answers every request itself, always in JSON: an unknown path (404) or method (405) first,
 * then wrong credentials, then a wrong body, and only then the endpoint.
 */
export function createManagementApp({
  rootTokens,
  failedCredentials,
  ...services
}: ManagementOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  // Another spelling of a path is another path, here as in the proxy.
  app.enable('case sensitive routing');
  app.enable('strict routing');

  app.use(forbidCaching);
  const authenticate = requireRootToken(new RootTokens(rootTokens), failedCredentials);
  const compile = createBodyCompiler(BODY_FORMATS);
  for (const [path, endpoints] of Map.groupBy(ENDPOINTS, ({ path }) => path)) {
    const route = app.route(path.replaceAll(/\{(\w+)\}/g, ':$1'));
    route.all(refuseOtherMethods(endpoints), authenticate);
    for (const endpoint of endpoints) {
      const readBody = endpoint.body === undefined ? [] : [...jsonBody(), checkBody(compile(endpoint.body))];
      route[endpoint.method](...readBody, answer(endpoint, services));
    }
  }
  app.use(refuseUnknownPath, errorHandler(services.log));
  return app;
}

/** Answers hold secrets and counts of the moment. */
const forbidCaching: RequestHandler = (_req, res, next) => {
  res.set('Cache-Control', 'no-store');
  next();
};

const refuseUnknownPath: RequestHandler = () => {
  throw new TollgateError('not_found', 'There is no such endpoint.');
};

function refuseOtherMethods(endpoints: readonly Endpoint[]): RequestHandler {
  const methods = endpoints.map(({ method }) => method.toUpperCase());
  const allowed = methods.includes('GET') ? ['HEAD', ...methods] : methods;
  allowed.sort();
  return (req, _res, next) => {
    if (allowed.includes(req.method)) return next();
    throw new MethodNotAllowed(allowed, `This endpoint answers only ${allowed.join(', ')}.`);
  };
}

function requireRootToken(
  rootTokens: RootTokens,
  failedCredentials: FailedCredentials | undefined,
): RequestHandler {
  return (req, _res, next) => {
    try {
      rootTokens.authenticate(req.headersDistinct.authorization ?? []);
    } catch (error) {
      const isGuess = error instanceof TollgateError && error.code === 'invalid_root_token';
      throw isGuess ? (failedCredentials?.answerTo(req, error) ?? error) : error;
    }
    next();
  };
}

function checkBody(check: CheckBody): RequestHandler {
  return (req, _res, next) => {
    check(req.body);
    next();
  };
}

function answer(endpoint: Endpoint, services: ManagementServices): RequestHandler {
  return async (req, res) => {
    const [id = ''] = Object.values(req.params).flat();
    // The simple query parser gives texts, and lists of them for what is repeated.
    const query = req.query as ParsedUrlQuery;
    res.status(endpoint.status).json(await endpoint.handle({ id, query, body: req.body }, services));
  };
}
