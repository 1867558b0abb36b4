import { type ErrorCode, InternalError, InvalidBody, TollgateError } from '../../errors.ts';
import { MethodNotAllowed } from './method-not-allowed.ts';

/** A complete response to a failed request: what Express, the proxy and a raw socket write alike. */
export interface ErrorResponse {
  readonly status: number;
  /** Besides Content-Length, and Content-Type where it is JSON: every error response has them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The content of an error response, independent of its format. */
export interface FailedRequest {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** With `errors` for an invalid body, and the details of the error. */
  readonly fields: { readonly error: string; readonly code: ErrorCode; readonly [detail: string]: unknown };
}

interface Mapping {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
}

const CHALLENGE = 'Bearer realm="tollgate"';
const missing: Mapping = { status: 401, headers: { 'WWW-Authenticate': CHALLENGE } };
const wrong: Mapping = {
  status: 401,
  headers: { 'WWW-Authenticate': `${CHALLENGE}, error="invalid_token"` },
};
const tryAgain: Mapping = { status: 503, headers: { 'Retry-After': '1' } };

/** The one table from error code to response. */
const RESPONSES: Readonly<Record<ErrorCode, Mapping>> = {
  malformed_json: { status: 400 },
  invalid_body: { status: 400 },
  pattern_not_canonical: { status: 400 },
  invalid_parameter: { status: 400 },
  invalid_cursor: { status: 400 },
  unsupported_grouping: { status: 400 },
  range_too_large: { status: 400 },
  bad_request: { status: 400 },
  original_request_invalid: { status: 400 },
  missing_scope: { status: 403 },
  missing_root_token: missing,
  invalid_root_token: wrong,
  invalid_authorize_token: {
    status: 401,
    headers: { 'WWW-Authenticate': 'Tollgate-Authorize-Token realm="tollgate"' },
  },
  missing_api_key: missing,
  invalid_api_key: wrong,
  key_disabled: wrong,
  key_expired: wrong,
  root_token_off: { status: 403 },
  sign_in_rejected: { status: 403 },
  address_not_allowed: { status: 403 },
  origin_not_allowed: { status: 403 },
  key_not_found: { status: 404 },
  plan_not_found: { status: 404 },
  limit_not_found: { status: 404 },
  admin_token_not_found: { status: 404 },
  session_not_found: { status: 404 },
  webhook_not_found: { status: 404 },
  delivery_not_found: { status: 404 },
  job_not_found: { status: 404 },
  handover_not_found: { status: 404 },
  handover_gone: { status: 410 },
  handover_unavailable: { status: 409 },
  secret_not_available: { status: 409 },
  webhook_url_not_allowed: { status: 400 },
  webhook_disabled: { status: 409 },
  not_subscribed: { status: 409 },
  not_found: { status: 404 },
  method_not_allowed: { status: 405 },
  request_timeout: { status: 408 },
  plan_exists: { status: 409 },
  plan_in_use: { status: 409 },
  plan_is_default: { status: 409 },
  secret_taken: { status: 409 },
  rotation_in_progress: { status: 409 },
  version_mismatch: { status: 412 },
  no_rotation: { status: 409 },
  managed_elsewhere: { status: 409 },
  digest_mismatch: { status: 412 },
  count_mismatch: { status: 409 },
  idempotency_key_reused: { status: 422 },
  idempotency_in_progress: { status: 409, headers: { 'Retry-After': '1' } },
  body_too_large: { status: 413 },
  target_too_long: { status: 414 },
  unsupported_media_type: { status: 415 },
  expectation_failed: { status: 417 },
  too_many_requests: { status: 429, headers: { 'Retry-After': '1' } },
  head_too_large: { status: 431 },
  not_implemented: { status: 501 },
  http_version_not_supported: { status: 505 },
  loop_detected: { status: 508 },
  bad_gateway: { status: 502 },
  overloaded: tryAgain,
  store_unavailable: tryAgain,
  provider_unavailable: tryAgain,
  gateway_timeout: { status: 504 },
  internal_error: { status: 500 },
};

/** The response to an error, as JSON with the fields of `failureOf`. */
export function errorResponse(error: unknown): ErrorResponse {
  return jsonResponse(failureOf(error));
}

export function jsonResponse({ status, headers, fields }: FailedRequest): ErrorResponse {
  return { status, headers, body: JSON.stringify(fields) };
}

/** The content of the response to an error. Anything but a `TollgateError` is an `internal_error`, whose detail stays in the log. */
export function failureOf(error: unknown): FailedRequest {
  const known = error instanceof TollgateError ? error : new InternalError();
  const { status } = RESPONSES[known.code];
  const headers: Record<string, string> = { ...RESPONSES[known.code].headers };
  const errors = known instanceof InvalidBody ? { errors: known.faults } : {};
  if (known instanceof MethodNotAllowed) headers.Allow = known.allowed.join(', ');
  if (known.retryAfterS !== undefined) headers['Retry-After'] = String(known.retryAfterS);
  return { status, headers, fields: { error: known.message, code: known.code, ...known.details, ...errors } };
}
