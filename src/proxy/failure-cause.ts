import { BackendError } from '../backend/backend-error.ts';

/** Longest chain of causes that is followed. */
const DEPTH = 5;

/**
 * What the log says of why a request failed: the system's code (`ECONNREFUSED`, `ENOTFOUND`, `CERT_HAS_EXPIRED`) where there is one, else
 * what happened on the connection ("reset in the response head"), else the name of the error. Never a message that others wrote: it may
 * repeat what a client or a backend sent.
 */
export function failureCause(error: unknown): string | undefined {
  let found: string | undefined;
  let cause = error;
  for (let depth = 0; depth < DEPTH && cause instanceof Error; depth += 1) {
    if (cause instanceof BackendError && cause.kind !== 'connect_failed') return cause.message;
    if ('code' in cause && typeof cause.code === 'string' && cause.code === cause.code.toUpperCase()) {
      return cause.code;
    }
    found = cause.name;
    cause = cause.cause;
  }
  return found;
}
