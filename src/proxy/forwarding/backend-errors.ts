import { BackendError } from '../../backend/backend-error.ts';
import type { NoPlace } from '../../backend/pool/places.ts';
import { InternalError, TollgateError } from '../../errors.ts';

/** The client's error when the backend gave no response. The cause, with the system's own error in it, is for the log only. */
export function backendFailure(cause: unknown): TollgateError {
  if (!(cause instanceof BackendError)) return new InternalError(cause);
  if (cause.kind === 'connect_timeout') return gatewayTimeout(cause);
  return new TollgateError('bad_gateway', 'The backend gave no valid response.', cause);
}

/** The backend did not respond, or no connection to it became free, within the timeout. */
export function gatewayTimeout(cause?: unknown): TollgateError {
  return new TollgateError('gateway_timeout', 'The backend did not respond in time.', cause);
}

/** Why a request gets no place with the backend, by its kind and by which bound is reached. */
const OVERLOADED = {
  request: {
    full: 'Too many requests are waiting for the backend. Try again shortly.',
    key_full: 'Too many requests of this API key are waiting for the backend. Try again shortly.',
  },
  upgrade: {
    full: 'Too many upgraded connections are open. Try again shortly.',
    key_full: 'Too many upgraded connections of this API key are open. Close some of them first.',
  },
} as const satisfies Record<string, Record<NoPlace, string>>;

export type PlaceKind = keyof typeof OVERLOADED;

/** There is no place with the backend, nor in the queue for one. */
export function overloaded(kind: PlaceKind, reason: NoPlace): TollgateError {
  return new TollgateError('overloaded', OVERLOADED[kind][reason]);
}
