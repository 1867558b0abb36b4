/**
 * Every failure that we expect. `code` is stable and part of the wire contract. `message` is a sentence that is safe to show to a client.
 * `cause` keeps the private detail for the log. Domain code throws these errors and knows no HTTP:
 * `http/errors/error-responses.ts` maps each code to its response.
 */
export const ERROR_CODES = [
  'malformed_json',
  'invalid_body',
  'pattern_not_canonical',
  'invalid_parameter',
  'invalid_cursor',
  'unsupported_grouping',
  'range_too_large',
  'bad_request',
  'original_request_invalid',
  'missing_scope',
  'missing_root_token',
  'invalid_root_token',
  'invalid_authorize_token',
  'missing_api_key',
  'invalid_api_key',
  'key_disabled',
  'key_expired',
  'root_token_off',
  'sign_in_rejected',
  'address_not_allowed',
  'origin_not_allowed',
  'key_not_found',
  'plan_not_found',
  'limit_not_found',
  'admin_token_not_found',
  'session_not_found',
  'webhook_not_found',
  'delivery_not_found',
  'job_not_found',
  'handover_not_found',
  'handover_gone',
  'handover_unavailable',
  'secret_not_available',
  'webhook_url_not_allowed',
  'webhook_disabled',
  'not_subscribed',
  'not_found',
  'method_not_allowed',
  'request_timeout',
  'plan_exists',
  'plan_in_use',
  'plan_is_default',
  'secret_taken',
  'rotation_in_progress',
  'version_mismatch',
  'no_rotation',
  'managed_elsewhere',
  'digest_mismatch',
  'count_mismatch',
  'idempotency_key_reused',
  'idempotency_in_progress',
  'body_too_large',
  'target_too_long',
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
  'provider_unavailable',
  'gateway_timeout',
  'internal_error',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** A field of a body that breaks a rule; `message` is the rule. */
export interface FieldFault {
  readonly field: string;
  readonly message: string;
}

/** Base of all errors that may be sent to a client. */
export class TollgateError extends Error {
  readonly code: ErrorCode;
  /** Further fields of the response, which are safe to show to a client. */
  readonly details: Readonly<Record<string, unknown>> = {};
  /** Seconds after which a retry makes sense; undefined = the usual time for the code. */
  readonly retryAfterS: number | undefined = undefined;

  constructor(code: ErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
  }
}

/** The most faults of a body, or conflicts of a configuration, in a response. */
export const MAX_FAULTS = 50;

/** A body whose fields break the schema; `faults` lists each of them. */
export class InvalidBody extends TollgateError {
  readonly faults: readonly FieldFault[];

  constructor(
    faults: readonly FieldFault[],
    code: 'invalid_body' | 'pattern_not_canonical' = 'invalid_body',
  ) {
    super(code, 'The request body has invalid fields; each is listed under "errors".');
    this.faults = faults;
  }

  /** The same faults for a larger body that has this one at `path`, such as `keys[3]`. */
  under(path: string): InvalidBody {
    return this.withFaults(this.faults.map(({ field, message }) => ({ field: `${path}.${field}`, message })));
  }

  protected withFaults(faults: readonly FieldFault[]): InvalidBody {
    return new InvalidBody(faults);
  }
}

/** Path patterns that match no canonical path; the faults name the spelling to use where there is one. */
export class PatternNotCanonical extends InvalidBody {
  constructor(faults: readonly FieldFault[]) {
    super(faults, 'pattern_not_canonical');
  }

  protected override withFaults(faults: readonly FieldFault[]): InvalidBody {
    return new PatternNotCanonical(faults);
  }
}

/** Throws `InvalidBody` with the first faults, up to `MAX_FAULTS`, if there are any. */
export function requireNoFaults(faults: readonly FieldFault[]): void {
  if (faults.length > 0) throw new InvalidBody(faults.slice(0, MAX_FAULTS));
}

/** A cursor that the gateway did not make, or that belongs to another list. */
export class InvalidCursor extends TollgateError {
  constructor() {
    super('invalid_cursor', 'The cursor must be the nextCursor of an earlier response to the same query.');
  }
}

/** A grouping of usage that the stored rows can't provide. */
export class UnsupportedGrouping extends TollgateError {
  constructor() {
    super(
      'unsupported_grouping',
      'Usage by endpoint or by customer is kept by day of UTC and apart from each other: ask for one of the two, with the interval "day", ' +
        '"month" or "total" and without a timeZone other than UTC.',
    );
  }
}

/** A series with more rows than a response may have. `largest` is the range that would fit, if any. Milliseconds since 1970. */
export class RangeTooLarge extends TollgateError {
  override readonly details: Readonly<Record<string, unknown>>;

  constructor(largest: { readonly fromMs: number; readonly toMs: number } | undefined) {
    const [from, to] = largest === undefined ? [] : [isoSeconds(largest.fromMs), isoSeconds(largest.toMs)];
    super(
      'range_too_large',
      largest === undefined
        ? 'The series has more than 10000 rows in its first bucket alone: ask for fewer groups, by "top" or a filter.'
        : `The series has more than 10000 rows. The largest range that fits is from ${from} to ${to}.`,
    );
    this.details = largest === undefined ? {} : { largestRange: { from, to } };
  }
}

/** A valid credential without the required scope. */
export class MissingScope extends TollgateError {
  override readonly details: { readonly requiredScope: string };

  constructor(requiredScope: string) {
    super('missing_scope', `This needs a token with the scope "${requiredScope}".`);
    this.details = { requiredScope };
  }
}

/** An action that the consumer of a key may not do with it. */
export class SelfServiceNotAllowed extends TollgateError {
  override readonly details: { readonly requiredScope: string };

  constructor(action: string) {
    super('missing_scope', `An administrator has to allow this for the key: "selfService": ["${action}"].`);
    this.details = { requiredScope: action };
  }
}

/** A proxied request without a key. */
export class MissingApiKey extends TollgateError {
  constructor() {
    super('missing_api_key', 'A consumer API key is required: Authorization: Bearer <key>.');
  }
}

/** A secret that no key has, or no longer has. */
export class InvalidApiKey extends TollgateError {
  constructor() {
    super('invalid_api_key', 'The consumer API key is not valid.');
  }
}

/** A key that an administrator has disabled. */
export class KeyDisabled extends TollgateError {
  constructor() {
    super('key_disabled', 'The consumer API key is disabled.');
  }
}

/** A key whose `expiresAt` has passed. */
export class KeyExpired extends TollgateError {
  constructor() {
    super('key_expired', 'The consumer API key has expired.');
  }
}

/** A request to the management interface without a token. */
export class MissingToken extends TollgateError {
  constructor() {
    super(
      'missing_root_token',
      'This endpoint needs the root token or an admin token: send the header "Authorization: Bearer <token>".',
    );
  }
}

/** A token that is neither a root token nor one of a valid admin token. */
export class InvalidToken extends TollgateError {
  constructor() {
    super('invalid_root_token', 'This is neither a root token nor a valid admin token or session.');
  }
}

/** A root token in a browser, where the settings do not allow it. */
export class RootTokenOff extends TollgateError {
  constructor() {
    super(
      'root_token_off',
      'The root token may not be used in a browser (ROOT_TOKEN_SIGN_IN): sign in with the identity provider or an admin token.',
    );
  }
}

/** A key id that names no key. */
export class KeyNotFound extends TollgateError {
  constructor(message = 'There is no consumer API key with this id.') {
    super('key_not_found', message);
  }
}

/** A secret that belongs to a key already. */
export class SecretTaken extends TollgateError {
  constructor() {
    super('secret_taken', 'A consumer API key has this secret already, or had it a moment ago.');
  }
}

/** An import that was rejected as a whole: nothing was stored. */
export class ImportRejected extends TollgateError {
  override readonly details: {
    readonly results: readonly { readonly index: number; readonly code: string }[];
  };

  constructor(code: 'secret_taken' | 'plan_not_found', results: ImportRejected['details']['results']) {
    const why = code === 'secret_taken' ? 'whose secret is taken' : 'whose plan does not exist';
    super(code, `No key was imported. Keys ${why}: ${results.length}, listed under "results".`);
    this.details = { results };
  }
}

/** A key that has two secrets already. */
export class RotationInProgress extends TollgateError {
  constructor() {
    super(
      'rotation_in_progress',
      'The consumer API key has two secrets already. End its rotation first, or wait until the previous secret has expired.',
    );
  }
}

/** A key that has only one secret. */
export class NoRotation extends TollgateError {
  constructor() {
    super('no_rotation', 'The consumer API key is not being rotated: it has only one secret.');
  }
}

/** A plan id that names no plan. */
export class PlanNotFound extends TollgateError {
  /** `name` is the field or parameter with the id. */
  constructor(name: 'rateLimitId' | 'rebindTo' = 'rateLimitId') {
    super('plan_not_found', `There is no rate limit plan with this ${name}.`);
  }
}

/** An id that names no admin token. */
export class AdminTokenNotFound extends TollgateError {
  constructor() {
    super('admin_token_not_found', 'There is no admin token with this id.');
  }
}

/** An id that names no session. */
export class SessionNotFound extends TollgateError {
  constructor() {
    super('session_not_found', 'There is no session with this id.');
  }
}

/** A limit that the plan of a key does not have; with a customer, one that it does not have for each customer. */
export class WebhookNotFound extends TollgateError {
  constructor() {
    super('webhook_not_found', 'There is no webhook with this id.');
  }
}

/** An id that names no job. */
export class JobNotFound extends TollgateError {
  constructor() {
    super('job_not_found', 'There is no job with this id.');
  }
}

/** Another number of keys than the author expects. Nothing was changed. */
export class CountMismatch extends TollgateError {
  override readonly details: { readonly count: number };

  constructor(expected: number, count: number) {
    super(
      'count_mismatch',
      `Nothing was changed: the request is about ${count} keys, and "expectCount" is ${expected}.`,
    );
    this.details = { count };
  }
}

export class DeliveryNotFound extends TollgateError {
  constructor() {
    super('delivery_not_found', 'The webhook has no delivery with this id.');
  }
}

/** An address that events are not sent to. `rule` names the rule that it breaks, `message` explains it. */
export class WebhookUrlNotAllowed extends TollgateError {
  override readonly details: { readonly rule: string };

  constructor(rule: string, message: string) {
    super('webhook_url_not_allowed', message);
    this.details = { rule };
  }
}

export class LimitNotFound extends TollgateError {
  /** `limitIds` are those of the key's plan. `limitId` is the requested one; undefined if only a customer was named. */
  constructor(limitIds: readonly string[], limitId: string | undefined) {
    super('limit_not_found', sentenceOf(limitIds, limitId));
  }
}

function sentenceOf(limitIds: readonly string[], limitId: string | undefined): string {
  const list = limitIds.join(', ');
  if (list === '') return 'No limit applies to this key.';
  if (limitId === undefined)
    return `The plan of this key has no limit for each customer, which customerId is for. It has ${list}.`;
  if (limitIds.includes(limitId))
    return `The limit ${limitId} is not for each customer: leave customerId out.`;
  return `The plan of this key has no limit with this limitId. It has ${list}.`;
}

/** A plan id that is taken. */
export class PlanExists extends TollgateError {
  constructor() {
    super('plan_exists', 'A rate limit plan with this rateLimitId exists already.');
  }
}

/** A plan that can't be deleted because keys are bound to it. */
export class PlanInUse extends TollgateError {
  override readonly details: { readonly boundKeys: number };

  constructor(planId: string, { boundKeys, hasUnseenKeys }: BoundKeys) {
    const keys = boundKeys === 1 ? '1 key is' : `${boundKeys} keys are`;
    super(
      'plan_in_use',
      hasUnseenKeys
        ? 'Keys that this admin token does not see are bound to the rate limit plan. Only a token that sees them can have them bound to another one.'
        : `${keys} bound to the rate limit plan. Bind all its keys to another one first, or let ?rebindTo=<rateLimitId> do it; GET /consumer-api-key?rateLimitId=${planId} lists them.`,
    );
    this.details = { boundKeys };
  }
}

/** The keys that are bound to a plan, as far as the author of a change may know them. */
export interface BoundKeys {
  /** The number of keys that the author can see. */
  readonly boundKeys: number;
  /** Whether there are other keys, which the author can't see because of their tags. */
  readonly hasUnseenKeys: boolean;
}

/** A plan that can't be deleted because it applies to keys without a plan, now or after a restart with other settings. */
export class PlanIsDefault extends TollgateError {
  constructor() {
    super(
      'plan_is_default',
      'The rate limit plan can not be deleted: it applies to keys without a plan of their own, now or with other settings. Change it instead.',
    );
  }
}

/** A change whose preconditions do not hold: the record has changed since its author has seen it. Nothing was changed. */
export class VersionMismatch extends TollgateError {
  constructor() {
    super(
      'version_mismatch',
      'What you want to change has changed since, or is not there. Read it again, and send its new ETag.',
    );
  }
}

/** Why a configuration can't be applied to a record. */
export interface ConfigurationConflict {
  readonly type: 'plan' | 'key' | 'webhook';
  /** The rateLimitId or the externalId. */
  readonly id: string;
  readonly reason: string;
}

/** A configuration for records that its owner does not manage, or that were changed elsewhere. Nothing was applied. */
export class ManagedElsewhere extends TollgateError {
  override readonly details: { readonly conflicts: readonly ConfigurationConflict[] };

  constructor(conflicts: readonly ConfigurationConflict[]) {
    super(
      'managed_elsewhere',
      `Nothing was applied. Records that are managed elsewhere, or were changed there: ${conflicts.length}, listed under "conflicts". ${remedyOf(conflicts)}`,
    );
    this.details = { conflicts: conflicts.slice(0, MAX_FAULTS) };
  }
}

function remedyOf(conflicts: readonly ConfigurationConflict[]): string {
  const isAnyAmbiguous = conflicts.some(({ reason }) => reason === 'ambiguous');
  const isAnyOther = conflicts.some(({ reason }) => reason !== 'ambiguous');
  if (!isAnyAmbiguous) return '"force" takes them over.';
  const remedy = 'Several records have the externalId of an ambiguous one: give it another.';
  return isAnyOther ? `${remedy} "force" takes the others over.` : remedy;
}

/** A configuration with secrets that belong to other keys. Nothing was applied. */
export class SecretsTaken extends TollgateError {
  override readonly details: { readonly conflicts: readonly ConfigurationConflict[] };

  constructor(externalIds: readonly string[]) {
    super(
      'secret_taken',
      `Nothing was applied: ${externalIds.length} of the new keys have a secretHash of a secret that is taken. They are listed under "conflicts".`,
    );
    this.details = {
      conflicts: externalIds.slice(0, MAX_FAULTS).map((id) => ({ type: 'key', id, reason: 'secret_taken' })),
    };
  }
}

/** The changes are not the ones that the author has seen. Nothing was applied. */
export class DigestMismatch extends TollgateError {
  override readonly details: { readonly digest: string };

  constructor(digest: string) {
    super(
      'digest_mismatch',
      'Nothing was applied: the changes are not those that "expectDigest" stands for. Look at the differences again.',
    );
    this.details = { digest };
  }
}

/** The message of every `store_unavailable`. Only the log says which store it was, and why. */
export const STORE_UNAVAILABLE_MESSAGE =
  'A store that this response needs is not available. Try again shortly.';

/** A store that the response needs did not respond, or not in time. Whether it has carried out the command is unknown. */
export class StoreUnavailable extends TollgateError {
  /** The store, for the log and for readiness. Never shown to a client. */
  readonly store: 'postgres' | 'redis';

  constructor(store: 'postgres' | 'redis', cause: unknown) {
    super('store_unavailable', STORE_UNAVAILABLE_MESSAGE, cause);
    this.store = store;
  }

  /** The reason, in one line for the log. A failure to reach several addresses of one host has only a code. */
  get reason(): string | undefined {
    const { message, code } = (this.cause ?? {}) as { readonly message?: unknown; readonly code?: unknown };
    return [message, code].find((each): each is string => typeof each === 'string' && each !== '');
  }
}

/**
 * A store that is there, but has not carried out this command: it took too long, perhaps because it waited for another one, or was given up for
 * another one. Other commands may succeed.
 */
export class StoreBusy extends StoreUnavailable {}

/** A fault of the gateway itself. */
export class InternalError extends TollgateError {
  constructor(cause?: unknown) {
    super('internal_error', 'The gateway failed to respond. The log has the reason.', cause);
  }
}

function isoSeconds(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
