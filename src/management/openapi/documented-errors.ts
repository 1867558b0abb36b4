import { STATUS_CODES } from 'node:http';
import { ERROR_CODES, type ErrorCode, TollgateError } from '../../errors.ts';
import { failureOf } from '../../http/errors/error-responses.ts';
import { HANDOVER_STATES } from '../../keys/handovers/handover.ts';
import type { Endpoint } from '../endpoint.ts';
import { COUNT, INSTANT, listOf, named, objectOf, orNull, TEXT } from '../response-schemas.ts';
import { headersOf } from './headers.ts';
import { capitalized, type SchemaComponents } from './schema-components.ts';

/** Codes that any endpoint may respond with. */
const GENERAL_ERRORS: readonly ErrorCode[] = [
  'bad_request',
  'invalid_parameter',
  'address_not_allowed',
  'request_timeout',
  'target_too_long',
  'expectation_failed',
  'head_too_large',
  'too_many_requests',
  'internal_error',
  'not_implemented',
  'store_unavailable',
  'http_version_not_supported',
];

/** Codes that any endpoint for holders of a link may respond with: any address may use one. */
const HOLDER_ERRORS: readonly ErrorCode[] = GENERAL_ERRORS.filter((code) => code !== 'address_not_allowed');

/** Codes that any endpoint for administrators may respond with. */
const COMMON_ERRORS: readonly ErrorCode[] = [
  ...GENERAL_ERRORS,
  'missing_root_token',
  'invalid_root_token',
  'missing_scope',
  'root_token_off',
  'origin_not_allowed',
  'overloaded',
  'provider_unavailable',
];

/** Codes that any endpoint for consumers may respond with. */
const CONSUMER_ERRORS: readonly ErrorCode[] = [
  ...GENERAL_ERRORS,
  'missing_api_key',
  'invalid_api_key',
  'key_disabled',
  'key_expired',
  'origin_not_allowed',
  'overloaded',
];

/** Codes that any endpoint with a body may respond with. */
const BODY_ERRORS: readonly ErrorCode[] = [
  'malformed_json',
  'invalid_body',
  'body_too_large',
  'unsupported_media_type',
];

const CONFLICTS = {
  ...listOf({ ...objectOf({ type: TEXT, id: TEXT, reason: TEXT }), title: 'ConfigurationConflict' }),
  description: 'What keeps a configuration from being applied; at most 50.',
};

const FIELD_FAULTS = {
  ...listOf({ ...objectOf({ field: TEXT, message: TEXT }), title: 'FieldFault' }),
  description: 'Each field that breaks its rule; only with the codes invalid_body and pattern_not_canonical.',
};

const IMPORT_FAILURES = {
  ...listOf({
    ...objectOf({ index: COUNT, code: { type: 'string', enum: ['secret_taken', 'plan_not_found'] } }),
    title: 'ImportFailure',
  }),
  description: 'The keys that keep an import from being made, by their index in the request.',
};

const GONE_FOR = 'Only with the code handover_gone.';

/** Further fields of an error, besides its sentence and its code. */
const DETAILS: Readonly<Partial<Record<ErrorCode, Readonly<Record<string, object>>>>> = {
  invalid_body: { errors: FIELD_FAULTS },
  pattern_not_canonical: { errors: FIELD_FAULTS },
  plan_in_use: { boundKeys: { ...COUNT, description: 'Only with the code plan_in_use.' } },
  missing_scope: { requiredScope: { ...TEXT, description: 'Only with the code missing_scope.' } },
  managed_elsewhere: { conflicts: CONFLICTS },
  secret_taken: { conflicts: CONFLICTS, results: IMPORT_FAILURES },
  plan_not_found: { results: IMPORT_FAILURES },
  count_mismatch: { count: { ...COUNT, description: 'Only with the code count_mismatch.' } },
  digest_mismatch: {
    digest: { ...TEXT, description: 'Of the changes as they are now; only with the code digest_mismatch.' },
  },
  handover_gone: {
    state: { type: 'string', enum: HANDOVER_STATES, description: GONE_FOR },
    usedAt: { ...orNull(INSTANT), description: GONE_FOR },
  },
  webhook_url_not_allowed: {
    rule: {
      ...TEXT,
      description: 'The rule that the address breaks; only with the code webhook_url_not_allowed.',
    },
  },
  range_too_large: {
    largestRange: {
      ...objectOf({ from: INSTANT, to: INSTANT }),
      title: 'TimeRange',
      description: 'Only with the code range_too_large, where a range fits.',
    },
  },
};

/** The error responses of the document, by name. Most are shared by many operations. */
export class ErrorResponses {
  readonly #schemas: SchemaComponents;
  readonly #responses = new Map<string, object>();

  constructor(schemas: SchemaComponents) {
    this.#schemas = schemas;
    schemas.place(PROBLEM, '');
  }

  all(): Readonly<Record<string, object>> {
    return Object.fromEntries([...this.#responses].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** One response for each status, with all codes of that status. */
  of(endpoint: Endpoint): Readonly<Record<string, object>> {
    const byStatus = Map.groupBy(new Set(codesOf(endpoint)), statusOf);
    return Object.fromEntries(
      [...byStatus]
        .toSorted(([a], [b]) => a - b)
        .map(([status, codes]) => [
          status,
          { $ref: `#/components/responses/${this.#add(status, codes.toSorted(), endpoint)}` },
        ]),
    );
  }

  /** Adds a response, named by its status and by its codes that not every operation with this status has. */
  #add(status: number, codes: readonly ErrorCode[], endpoint: Endpoint): string {
    const common = commonErrorsOf(endpoint);
    const own = codes.filter((code) => !common.includes(code) && !BODY_ERRORS.includes(code));
    const isOfBody = codes.includes('invalid_body');
    const words = own.length > 0 ? own : [isOfBody ? 'invalid_body' : (STATUS_CODES[status] ?? '')];
    const isForConsumersOnly = common === CONSUMER_ERRORS && differsForConsumers(status);
    const audience = isForConsumersOnly ? 'Consumer' : '';
    const name =
      audience + words.map(nameOf).join('Or') + (own.length > 0 && isOfBody ? 'OrInvalidBody' : '');
    const details = Object.assign({}, ...codes.map((code) => DETAILS[code] ?? {}));
    const always = {
      error: { type: 'string', description: 'A sentence for a person.' },
      code: { type: 'string', enum: codes, description: 'Stable, for programs.' },
    };
    const schema = named(name.endsWith('Error') ? name : `${name}Error`, objectOf(always, details));
    this.#responses.set(name, {
      description: codes.join(', '),
      headers: headersOf([
        'X-Request-Id',
        ...(status === 401 ? (['WWW-Authenticate'] as const) : []),
        ...(codes.some(hasRetryAfter) ? (['Retry-After'] as const) : []),
        'Vary',
      ]),
      content: {
        'application/json': { schema: this.#schemas.place(schema, '') },
        'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
      },
    });
    return name;
  }
}

/** The body of an error with `Accept: application/problem+json`. */
const PROBLEM = named(
  'Problem',
  objectOf(
    {
      type: { type: 'string', description: 'urn:problem-type:tollgate: and the code.' },
      title: TEXT,
      status: { type: 'integer', minimum: 400, maximum: 599 },
      detail: { type: 'string', description: 'A sentence for a person.' },
      code: { type: 'string', enum: ERROR_CODES, description: 'Stable, for programs.' },
    },
    Object.assign({}, ...Object.values(DETAILS)),
  ),
);

/** Every code that an operation may respond with. */
function codesOf(endpoint: Endpoint): readonly ErrorCode[] {
  const { method, path, body, conditional, forHolders, errors } = endpoint;
  return [
    ...commonErrorsOf(endpoint),
    ...(body === undefined ? [] : [...BODY_ERRORS, 'overloaded' as const]),
    ...(path.includes('{') ? (['not_found'] as const) : []),
    ...(conditional ? (['version_mismatch'] as const) : []),
    ...(method === 'post' && !forHolders
      ? (['idempotency_key_reused', 'idempotency_in_progress'] as const)
      : []),
    ...errors,
  ];
}

function commonErrorsOf({ forConsumers, forHolders }: Endpoint): readonly ErrorCode[] {
  if (forHolders) return HOLDER_ERRORS;
  return forConsumers ? CONSUMER_ERRORS : COMMON_ERRORS;
}

/** Whether consumers may get other codes with this status than administrators. */
function differsForConsumers(status: number): boolean {
  const [ofConsumers, ofAdministrators] = [CONSUMER_ERRORS, COMMON_ERRORS].map((codes) =>
    codes.filter((code) => statusOf(code) === status).toSorted(),
  );
  return ofConsumers?.join() !== ofAdministrators?.join();
}

function statusOf(code: ErrorCode): number {
  return failureOf(new TollgateError(code, '')).status;
}

function hasRetryAfter(code: ErrorCode): boolean {
  return 'Retry-After' in failureOf(new TollgateError(code, '')).headers;
}

/** Turns `plan_in_use` and `Not Found` into `PlanInUse` and `NotFound`. */
function nameOf(words: string): string {
  return words
    .split(/[^A-Za-z]+/)
    .map(capitalized)
    .join('');
}
