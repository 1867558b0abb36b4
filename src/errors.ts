/**
 * Every failure that we expect. `code` is stable and part of the wire contract; `message` is a sentence that is safe
 * to show to a caller; `cause` keeps the private detail for the log. Domain code throws these and knows no HTTP:
 * `http/error-answers.ts` maps each code to its answer.
 */
export const ERROR_CODES = [
  'malformed_json',
  'invalid_body',
  'invalid_parameter',
  'bad_request',
  'missing_root_token',
  'invalid_root_token',
  'missing_api_key',
  'invalid_api_key',
  'key_disabled',
  'key_expired',
  'key_not_found',
  'plan_not_found',
  'not_found',
  'method_not_allowed',
  'request_timeout',
  'plan_exists',
  'plan_in_use',
  'body_too_large',
  'unsupported_media_type',
  'expectation_failed',
  'too_many_requests',
  'head_too_large',
  'not_implemented',
  'http_version_not_supported',
  'loop_detected',
  'bad_gateway',
  'overloaded',
  'store_unavailable',
  'shutting_down',
  'gateway_timeout',
  'internal_error',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** A field of a body that breaks a rule, and what the rule wants. */
export interface FieldFault {
  readonly field: string;
  readonly message: string;
}

/** Base of all errors that may be answered to a caller. */
export class TollgateError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
  }
}

/** A body whose fields break the schema; `faults` lists each of them. */
export class InvalidBody extends TollgateError {
  readonly faults: readonly FieldFault[];

  constructor(faults: readonly FieldFault[]) {
    super('invalid_body', 'The request body has invalid fields; each is listed under "errors".');
    this.faults = faults;
  }
}

/** A key id that names no key. */
export class KeyNotFound extends TollgateError {
  constructor() {
    super('key_not_found', 'There is no consumer API key with this id.');
  }
}

/** A plan id that names no plan. */
export class PlanNotFound extends TollgateError {
  constructor() {
    super('plan_not_found', 'There is no rate limit plan with this rateLimitId.');
  }
}

/** A plan id that is taken. */
export class PlanExists extends TollgateError {
  constructor() {
    super('plan_exists', 'A rate limit plan with this rateLimitId exists already.');
  }
}

/** A plan that can't be deleted because keys use it or because it is the default plan. */
export class PlanInUse extends TollgateError {
  constructor() {
    super(
      'plan_in_use',
      'The rate limit plan is in use: bind its keys to another plan first. The default plan can not be deleted.',
    );
  }
}

/** A store that the answer needs did not answer, or not in time. Nothing is known of what it did. */
export class StoreUnavailable extends TollgateError {
  /** Which store: for the log and readiness, never for a caller. */
  readonly store: 'postgres' | 'redis';

  constructor(store: 'postgres' | 'redis', cause: unknown) {
    super('store_unavailable', 'A store that this answer needs is not available. Try again shortly.', cause);
    this.store = store;
  }
}
