/** Timeouts of client connections. Milliseconds. */
export interface ClientTimeouts {
  /** For a complete head, from the connection's or the request's first byte. */
  readonly headMs: number;
  /** For the next byte of a request's body, and for a client to take the next byte of a response. */
  readonly idleMs: number;
  /** For the next request on a connection. */
  readonly keepAliveMs: number;
  /** Interval of the checks for clients that have left while nothing is read from them. */
  readonly probeMs: number;
}

/** The timeouts of a gateway; tests have shorter ones. */
export const CLIENT_TIMEOUTS: ClientTimeouts = Object.freeze({
  headMs: 15_000,
  idleMs: 30_000,
  // Longer than the 60 s after which load balancers commonly close idle connections, so that they close first.
  keepAliveMs: 65_000,
  probeMs: 1000,
});

/** An unused connection is kept for longer than `Keep-Alive` says: a request sent at the last moment is served. Milliseconds. */
const KEEP_ALIVE_GRACE_MS = 1000;

/** How long a connection is kept between requests. Milliseconds. */
export function keptForMs({ keepAliveMs }: ClientTimeouts): number {
  return keepAliveMs + KEEP_ALIVE_GRACE_MS;
}
