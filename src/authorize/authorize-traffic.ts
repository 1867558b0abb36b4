// The room `authorize`: decisions for other gateways and services, which forward the request themselves.
// In: a request that describes another one: by headers of a dialect, or as JSON to `/verify`.
// Out: allowed or rejected, by the steps of the proxy, with the headers to add.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { TollgateError } from '../errors.ts';
import { RootTokens } from '../http/credentials/root-token.ts';
import { type ErrorResponse, errorResponse } from '../http/errors/error-responses.ts';
import { sendErrorWithLines } from '../http/errors/send-error.ts';
import { headerLine, type RawHeadResponse } from '../http/node-internals.ts';
import type { ParsedRequest } from '../http/parsed-request.ts';
import { MANAGED_VERIFY_PATH, VERIFY_PATH } from '../paths/path-matcher.ts';
import { decisionSteps, exchangeRunner, type Proxy as ProxiedSide } from '../proxy/pipeline.ts';
import type { ProxyOptions } from '../proxy/proxy-options.ts';
import { CrossOrigin } from '../proxy/steps/cors.ts';
import { sendRejection } from '../proxy/steps/send-rejection.ts';
import { allow } from './allow.ts';
import {
  AuthorizeExchange,
  closeUnlessRead,
  NO_STORE_LINE,
  RejectedAs403Exchange,
  rejectedAs403,
} from './authorize-exchange.ts';
import { AUTHORIZE_PATH, type AuthorizeCall, authorizeCallOf, DIALECTS, readOriginal } from './dialects.ts';

/** What the port for other gateways and services is built from. */
export interface AuthorizeOptions {
  /** The options of the proxied side, whose keys, limits and statistics are used. */
  readonly decision: ProxyOptions;
  readonly counters: ProxiedSide['counters'];
  /** One of them must come with each call; none = no token is needed. */
  readonly tokens: readonly string[];
  /** Called for each call that asks for no decision because of its form. */
  readonly onRejected: (error: TollgateError, requestId: string) => void;
  /** Serves `POST /verify`. */
  readonly verify: (req: IncomingMessage, res: ServerResponse) => void;
}

/** What the port serves: never an upgrade, and never the request itself. */
export interface AuthorizeTraffic {
  handle(req: IncomingMessage, res: RawHeadResponse, head: ParsedRequest): void;
  /** To be called when the drain time is over, before connections are cut: what is cut counts as `unavailable`. */
  endDrain(): void;
  /** The response to a call with a malformed head. */
  formatRejection(error: TollgateError, req?: IncomingMessage): ErrorResponse;
}

/** The field with the token of another gateway, lower case. */
const TOKEN_FIELD = 'tollgate-authorize-token';
/** What gateways send with a call. */
const FIELDS_OF_CALLS = [TOKEN_FIELD, 'x-original-method', 'x-forwarded-method', 'authorization'];

/** A health check, such as that of HAProxy in docs/authorize.md, is no call. But a gateway that is set up wrongly may send its calls to `/`. */
function isHealthCheck({ headers }: IncomingMessage, { path }: ParsedRequest): boolean {
  return path === '/' && FIELDS_OF_CALLS.every((name) => headers[name] === undefined);
}

/** Builds the port: the decision of the proxy by the same steps, with another last one. */
export function createAuthorizeTraffic(options: AuthorizeOptions): AuthorizeTraffic {
  const { decision, counters, onRejected, verify } = options;
  const tokens = options.tokens.length === 0 ? undefined : new RootTokens(options.tokens);
  const steps = [...decisionSteps(decision, new CrossOrigin(decision)), sendRejection(), allow(decision)];
  const run = exchangeRunner(decision, counters, AuthorizeExchange);
  const runRejectedAs403 = exchangeRunner(decision, counters, RejectedAs403Exchange);

  function decide(req: IncomingMessage, res: RawHeadResponse, head: ParsedRequest): void {
    const call = authorizeCallOf(head.target);
    const fault = tokenFault(req, tokens);
    if (fault !== undefined || call === undefined) {
      const error = fault ?? unknownDialect();
      rejectCall(req, res, { head, error, isRejectedAs403: call?.isRejectedAs403 });
      return;
    }
    const original = readOriginal(call, req);
    if (original instanceof TollgateError) {
      rejectCall(req, res, { head, error: original, isRejectedAs403: call.isRejectedAs403 });
      return;
    }
    // From here on it is the original request. Its body is with the gateway.
    req.method = original.method;
    (call.isRejectedAs403 ? runRejectedAs403 : run)(steps, req, res, { ...head, ...original.target });
  }

  function rejectCall(
    req: IncomingMessage,
    res: RawHeadResponse,
    { head, error, isRejectedAs403 = false }: RejectedCall,
  ): void {
    const requestId = decision.requestIds.idOf(req);
    if (!isHealthCheck(req, head)) onRejected(error, requestId);
    const response = errorResponse(error);
    closeUnlessRead(res, head);
    const lines = headerLine('X-Request-Id', requestId) + NO_STORE_LINE;
    sendErrorWithLines(res, isRejectedAs403 ? rejectedAs403(response) : response, lines);
  }

  return {
    handle(req, res, head) {
      const { path } = head;
      if (path.startsWith(AUTHORIZE_PATH)) decide(req, res, head);
      else if (path === VERIFY_PATH || path === MANAGED_VERIFY_PATH) {
        // The management interface routes it at its own path.
        req.url = MANAGED_VERIFY_PATH + head.target.slice(path.length);
        // Sessions of browsers are for the port of the management interface.
        delete req.headers.cookie;
        verify(req, res);
      } else {
        const error = new TollgateError('not_found', 'There is nothing at this path.');
        rejectCall(req, res, { head, error });
      }
    },
    endDrain: () => counters.endDrain(),
    formatRejection: (error, req) => formatRejection(error, req, tokens),
  };
}

interface RejectedCall {
  readonly head: ParsedRequest;
  readonly error: TollgateError;
  readonly isRejectedAs403?: boolean | undefined;
}

function tokenFault(req: IncomingMessage, tokens: RootTokens | undefined): TollgateError | undefined {
  // Node joins repeated fields, and no token has a comma.
  const given = req.headers[TOKEN_FIELD];
  if (tokens === undefined || (typeof given === 'string' && tokens.includes(given))) return undefined;
  return new TollgateError(
    'invalid_authorize_token',
    'The gateway in front must send one of AUTHORIZE_TOKEN in Tollgate-Authorize-Token.',
  );
}

/** A path below `AUTHORIZE_PATH` that is no dialect: the response lists those that there are. */
class UnknownDialect extends TollgateError {
  override readonly details = { dialects: DIALECTS.map((name) => `${AUTHORIZE_PATH}/${name}`) };
}

function unknownDialect(): TollgateError {
  return new UnknownDialect('not_found', `There is no such dialect. There are ${DIALECTS.join(', ')}.`);
}

/**
 * What a consumer wrote may make the head of a call invalid, or too large. The gateway must not take the rejection for a failure, after
 * which it may be set to forward: Envoy does that with each 5xx, nginx with what is neither 401 nor 403.
 */
function formatRejection(
  error: TollgateError,
  req: IncomingMessage | undefined,
  tokens: RootTokens | undefined,
): ErrorResponse {
  const call = authorizeCallOf(req?.url ?? '');
  const { status, headers, body } = errorResponse(
    (req && call && pathFault(call, req, tokens)) ?? asClientError(error),
  );
  const response = { status, headers: { ...headers, 'Cache-Control': 'no-store' }, body };
  return call?.isRejectedAs403 === true ? rejectedAs403(response) : response;
}

function asClientError(error: TollgateError): TollgateError {
  return errorResponse(error).status < SERVER_ERROR
    ? error
    : new TollgateError('original_request_invalid', error.message, error);
}

const SERVER_ERROR = 500;

/** In Envoy's dialect an invalid original path makes the path of the call invalid. Only a call with the token learns so. */
function pathFault(
  call: AuthorizeCall,
  req: IncomingMessage,
  tokens: RootTokens | undefined,
): TollgateError | undefined {
  const original = call.fields === undefined ? readOriginal(call, req) : undefined;
  return original instanceof TollgateError ? (tokenFault(req, tokens) ?? original) : undefined;
}
