/**
 * What went wrong between the gateway and the backend:
 * - `connect_failed`: no connection (ECONNREFUSED, no such name, TLS).
 * - `connect_timeout`: no connection in time.
 * - `connection_lost`: the backend closed or reset the connection before its response was complete.
 * - `malformed_response`: what it sent is not HTTP/1.x, or can be read in more than one way.
 * - `body_timeout`: it sent no byte of a body for too long.
 * - `request_body`: the client's body has another length than its head said.
 */
export type BackendErrorKind =
  | 'connect_failed'
  | 'connect_timeout'
  | 'connection_lost'
  | 'malformed_response'
  | 'body_timeout'
  | 'request_body';

/** A request that got no complete response. `cause` has the system's own error, such as ECONNREFUSED, where there was one. */
export class BackendError extends Error {
  readonly kind: BackendErrorKind;

  constructor(kind: BackendErrorKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'BackendError';
    this.kind = kind;
  }
}
