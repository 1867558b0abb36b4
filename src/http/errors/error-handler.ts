import type { ErrorRequestHandler } from 'express';
import { StoreUnavailable, TollgateError } from '../../errors.ts';
import type { Clock } from '../../platform/clock.ts';
import { LogThrottle } from '../../platform/log-throttle.ts';
import type { Logger } from '../../platform/logger.ts';
import type { RequestNotes } from '../with-request-id.ts';
import { negotiatedError } from './problem-details.ts';
import { sendError } from './send-error.ts';

/**
 * The last middleware of an Express app: responds to every failed request. Only failures of the gateway are logged, with the error and
 * the request's id; an unavailable store is logged once a minute.
 */
export function errorHandler(log: Logger, clock: Clock): ErrorRequestHandler {
  const throttles = { postgres: new LogThrottle(clock), redis: new LogThrottle(clock) };
  const report = (error: unknown, log: Logger): void => {
    if (error instanceof StoreUnavailable) reportStore(error, log, throttles[error.store]);
    else if (!(error instanceof TollgateError))
      log.error({ event: 'internal_error', err: error }, 'a management request failed');
  };
  return (thrown: unknown, req, res, _next) => {
    const error = translated(thrown);
    const notes = res.locals as RequestNotes;
    notes.errorCode = error instanceof TollgateError ? error.code : 'internal_error';
    report(error, log.child({ requestId: notes.requestId }));
    sendError(res, negotiatedError(error, req));
  };
}

/** One short, throttled line; at level debug each request with its stack. */
function reportStore(error: StoreUnavailable, log: Logger, throttle: LogThrottle): void {
  const { store, reason } = error;
  const event = 'store_unavailable';
  log.debug({ event, store, err: error }, 'a request got 503');
  const responses = throttle.note();
  if (responses === 0) return;
  log.warn({ event, store, reason, responses }, 'a store did not respond: requests that need it get 503');
}

/** Translates the errors that Express throws for a client's mistakes, without their detail. */
function translated(error: unknown): unknown {
  if (error instanceof TollgateError || !isClientError(error)) return error;
  if (error instanceof URIError) {
    return new TollgateError('bad_request', 'The path is not percent-encoded UTF-8.');
  }
  return new TollgateError('bad_request', 'The request can not be understood.');
}

/** An error of the package http-errors, or of the router for a path with invalid percent-encoding. */
interface ClientError extends Error {
  readonly status: number;
}

function isClientError(error: unknown): error is ClientError {
  if (!(error instanceof Error) || !('status' in error)) return false;
  return typeof error.status === 'number' && error.status >= 400 && error.status < 500;
}
