// The room `observability`: metrics, the access log, traces and readiness, and the closed set of outcomes that all of them use.
// In: summaries of ended requests, and readings of the other rooms' counters.
// Out: series for Prometheus, lines of the log, spans, and the body of `/readyz`.

import type { ErrorCode } from '../errors.ts';

/**
 * How a proxied request ended: the closed set of the access log's `outcome`, the label of the metrics and the attribute of traces.
 * `docs/metrics.md` describes each for operators.
 */
export const OUTCOMES = [
  /** The backend's response reached the client, with any status. An upgraded connection counts once it is switched. */
  'forwarded',
  /** Another gateway asked and may forward the request, or a service asked and may serve it. */
  'allowed',
  /** The gateway responded to a CORS preflight. */
  'preflight',
  /** A limit of the key's plan rejected the request: 429. */
  'limited',
  /**
   * No valid API key: 401, or 429 for a client that tries too many. Or the gateway that asked sent no valid token: 401.
   * Or the key lost its validity while the backend's response was arriving: the status is that of the response.
   */
  'unauthenticated',
  /** The key may not be used from the request's address or origin: 403, or any more while the backend's response was arriving. */
  'forbidden',
  /** The gateway rejected the form of the request. */
  'invalid_request',
  /** The backend could not be reached, gave no valid response, or none in time: 502 or 504. */
  'backend_error',
  /** The backend's response was cut short. */
  'truncated',
  /** The gateway or one of its stores could not serve it: 503 or 500. Or the gateway stopped before it was served. */
  'unavailable',
  /** The client disconnected before the response was complete, or the gateway cut it because the client was too slow. */
  'client_gone',
] as const;

/** Where decided requests go: to the backend, or back to the other gateway or the service that asked. */
export const ROUTES = ['backend', 'authorize'] as const;

export type Route = (typeof ROUTES)[number];

export type Outcome = (typeof OUTCOMES)[number];

const OUTCOME_OF_ERROR: Readonly<Partial<Record<ErrorCode, Outcome>>> = {
  invalid_authorize_token: 'unauthenticated',
  missing_api_key: 'unauthenticated',
  invalid_api_key: 'unauthenticated',
  key_disabled: 'unauthenticated',
  key_expired: 'unauthenticated',
  too_many_requests: 'unauthenticated',
  address_not_allowed: 'forbidden',
  origin_not_allowed: 'forbidden',
  bad_gateway: 'backend_error',
  gateway_timeout: 'backend_error',
  overloaded: 'unavailable',
  store_unavailable: 'unavailable',
  internal_error: 'unavailable',
};

/** The outcome of a proxied request that gets an error: `invalid_request` for codes that are not listed. */
export function outcomeOfError(code: ErrorCode): Outcome {
  return OUTCOME_OF_ERROR[code] ?? 'invalid_request';
}

/** How a management request ended. Outcomes of proxied requests have the same names. */
export const MANAGEMENT_OUTCOMES = [
  /** The operation succeeded. */
  'served',
  /** Too many self-service requests of a key: 429. */
  'limited',
  /** No valid token or key: 401, or 429 for a client that tries too many. */
  'unauthenticated',
  /** The token or key lacks the permission, or may not be used from the address: 403. */
  'forbidden',
  /** Another 4xx; the reason is in `errorCode`. */
  'invalid_request',
  /** A store, or the gateway, could not serve it: 503 or 500. */
  'unavailable',
  /** The client disconnected before the response was complete. */
  'client_gone',
] as const;

export type ManagementOutcome = (typeof MANAGEMENT_OUTCOMES)[number];

/**
 * The outcome of a management request, from the status of its response (0 = the client disconnected before there was one), and from the
 * actor, if that is known.
 */
export function managementOutcomeOf(status: number, actor: string | undefined): ManagementOutcome {
  if (status === 0) return 'client_gone';
  if (status === 429 && actor !== undefined) return 'limited';
  if (status === 401 || status === 429) return 'unauthenticated';
  if (status === 403) return 'forbidden';
  if (status >= 500) return 'unavailable';
  return status >= 400 ? 'invalid_request' : 'served';
}
