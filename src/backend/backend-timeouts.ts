/** Timeouts of connections to the backend. Milliseconds. The setting `BACKEND_TIMEOUT_MS` is the timeout of a response's head. */
export const BACKEND_TIMEOUTS = Object.freeze({
  /** For making a connection, TLS included, unless the timeout of a request is shorter. */
  connectMs: 10_000,
  /** For the next byte of a response's body. */
  bodyIdleMs: 30_000,
});
