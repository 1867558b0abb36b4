/** The timeouts of a connection to Redis. All are milliseconds. */
interface ConnectionTimeouts {
  readonly connectMs: number;
  /** Of all commands but decisions, which have a shorter one. */
  readonly commandMs: number;
  /** A connection on which nothing has arrived for this long, although something was sent, is closed. */
  readonly unresponsiveMs: number;
  /** The same for the connection of the change feed. */
  readonly subscriptionMs: number;
}

/** Everything but a decision may take ten times as long as a decision may, `decisionMs`, and at least two seconds. */
export function connectionTimeouts(decisionMs: number): ConnectionTimeouts {
  const patientMs = Math.max(10 * decisionMs, 2000);
  return {
    connectMs: patientMs,
    commandMs: patientMs,
    unresponsiveMs: 2 * patientMs,
    subscriptionMs: 3 * patientMs,
  };
}
