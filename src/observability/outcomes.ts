/**
 * How a proxied request ended: the closed set of the access log's `outcome`, the label of the metrics and the attribute of traces.
 * `docs/metrics.md` describes each for operators.
 */
export const OUTCOMES = [
  /** The backend's response reached the client, whatever its status; an upgraded connection counts once it is switched. */
  'forwarded',
  /** The gateway responded to a CORS preflight. */
  'preflight',
  /** Over the limit of the key's plan: 429. */
  'limited',
  /** No valid API key: 401, or 429 for a client that tries too many. */
  'unauthenticated',
  /** The key may not be used from the request's address, or by the web page that makes it: 403. */
  'forbidden',
  /** Rejected for its form. */
  'invalid_request',
  /** The backend could not be reached, gave no valid response, or none in time: 502 or 504. */
  'backend_error',
  /** The backend's response was cut short. */
  'truncated',
  /** The gateway or one of its stores could not serve it: 503 or 500. */
  'unavailable',
  /** The client left before the response was complete. */
  'client_gone',
] as const;

export type Outcome = (typeof OUTCOMES)[number];

/** How a management request ended, in the same words where the same thing happened. */
export const MANAGEMENT_OUTCOMES = [
  /** The operation succeeded. */
  'served',
  /** Too many requests of a key about itself: 429. */
  'limited',
  /** No valid token or key: 401, or 429 for a client that tries too many. */
  'unauthenticated',
  /** The token or key may not do this, or not from there: 403. */
  'forbidden',
  /** Rejected: another 4xx, whose reason is in `errorCode`. */
  'invalid_request',
  /** A store, or the gateway, could not serve it: 503 or 500. */
  'unavailable',
  /** The client left before the response was complete. */
  'client_gone',
] as const;

export type ManagementOutcome = (typeof MANAGEMENT_OUTCOMES)[number];

/** The outcome of a management request, from the status of its response (0 = the client left before there was one), and who made it if that is known. */
export function managementOutcomeOf(status: number, actor: string | undefined): ManagementOutcome {
  if (status === 0) return 'client_gone';
  if (status === 429 && actor !== undefined) return 'limited';
  if (status === 401 || status === 429) return 'unauthenticated';
  if (status === 403) return 'forbidden';
  if (status >= 500) return 'unavailable';
  return status >= 400 ? 'invalid_request' : 'served';
}
