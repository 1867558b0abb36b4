import { TollgateError } from '../errors.ts';

/** What a client is told when the backend gave no answer. The cause is for the log only. */
export function backendFault(cause: Error): TollgateError {
  if ('code' in cause && typeof cause.code === 'string' && TIMEOUTS.has(cause.code)) {
    return gatewayTimeout(cause);
  }
  return new TollgateError('bad_gateway', 'The backend gave no valid answer.', cause);
}

/** The backend, or a free connection to it, was waited for long enough. */
export function gatewayTimeout(cause?: Error): TollgateError {
  return new TollgateError('gateway_timeout', 'The backend did not answer in time.', cause);
}

/** More requests wait for a backend connection than may. */
export function overloaded(): TollgateError {
  return new TollgateError('overloaded', 'Too many requests are waiting for the backend. Try again shortly.');
}

const TIMEOUTS: ReadonlySet<string> = new Set(['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT']);
