/** A request that was sent on a connection that then failed. */
export interface FailedAttempt {
  readonly method: string;
  readonly hasBody: boolean;
  readonly isUpgrade: boolean;
  /** The connection had carried another request before. */
  readonly isReusedConnection: boolean;
  /** A byte of the response has arrived. */
  readonly hasResponseBytes: boolean;
  /** It was the second attempt. */
  readonly isRetry: boolean;
}

/** Safe methods: only a request with one of them may be sent a second time (RFC 9110 section 9.2.2). */
const RETRIED_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Whether a request is sent once more, on another connection. The backend may close an idle connection just when a request is sent on it:
 * that is no failure of the request, and the client gets no error for it if the request can't have had an effect.
 */
export function mayRetry(attempt: FailedAttempt): boolean {
  return (
    attempt.isReusedConnection &&
    !attempt.isRetry &&
    !attempt.hasResponseBytes &&
    !attempt.hasBody &&
    !attempt.isUpgrade &&
    RETRIED_METHODS.has(attempt.method)
  );
}
