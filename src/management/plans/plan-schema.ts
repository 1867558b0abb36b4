import { type BodySchema, bodySchema, editSchema, type FieldSchema } from '../../http/body-schema.ts';
import { PERIOD_RULE } from '../../limiter/period.ts';
import { LIMIT_MODES, LIMIT_SCOPES } from '../../limiter/request-limits.ts';
import type { PlanTerms } from '../../plans/plan.ts';
import { NEW_PLAN_ID, PLAN_ID_FORM } from '../../plans/plan-id.ts';

const RATE_LIMIT_ID: FieldSchema = {
  description: `must be ${PLAN_ID_FORM}, without a secret in it`,
  type: 'string',
  pattern: NEW_PLAN_ID.source,
  format: 'shown-name',
};
const DESCRIPTION: FieldSchema = {
  description: 'must be a string of at most 1024 characters without NUL or unpaired surrogates',
  type: 'string',
  maxLength: 1024,
  format: 'stored-text',
};
/** The limit of a window, or what is given or reserved in it, in units. */
export const LIMIT: FieldSchema = {
  description: 'must be an integer from 1 to 999999999999999',
  type: 'integer',
  minimum: 1,
  maximum: 999_999_999_999_999,
};
const PERIOD: FieldSchema = { description: PERIOD_RULE, type: 'string', format: 'period' };

/** The id of a limit within its plan. */
export const LIMIT_ID: FieldSchema = {
  description: 'must be 1 to 32 letters, digits, dots, hyphens or underscores, the first a letter or a digit',
  type: 'string',
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$',
};
/** Most limits of a plan beside its own, most patterns of one of them, and most costs of a plan. The console has the same bounds. */
export const MAX_ADDITIONAL_LIMITS = 7;
export const MAX_PATTERNS = 32;
export const MAX_COSTS = 32;

const METHODS: FieldSchema = {
  description:
    'must be a list of 1 to 16 different methods in upper case, like ["GET", "POST"]; leave it out for all',
  type: 'array',
  minItems: 1,
  maxItems: 16,
  uniqueItems: true,
  items: {
    description: 'must be a method in upper case, like "GET"',
    type: 'string',
    pattern: "^[!#$%&'*+.^_`|~0-9A-Z-]{1,64}$",
  },
};
const PATH: FieldSchema = {
  description:
    'must be a path of literal segments, "*" or "{name}" for any one segment, and "**" at its end for the rest, like "/v1/search/**"; it is stored percent-decoded, and in lower case unless PATH_CASE=sensitive',
  type: 'string',
  format: 'path-pattern',
};
const MATCH: FieldSchema = {
  description: `must be a list of 1 to ${MAX_PATTERNS} patterns of requests; leave it out for every request`,
  type: 'array',
  minItems: 1,
  maxItems: MAX_PATTERNS,
  items: {
    title: 'WrittenRequestPattern',
    description: 'must be an object with "path" and perhaps "methods"',
    type: 'object',
    required: ['path'],
    additionalProperties: false,
    properties: { methods: METHODS, path: PATH },
  },
};
const ADDITIONAL_LIMITS: FieldSchema = {
  description: `must be a list of at most ${MAX_ADDITIONAL_LIMITS} limits beside the plan's own`,
  type: 'array',
  maxItems: MAX_ADDITIONAL_LIMITS,
  items: {
    title: 'WrittenAdditionalLimit',
    description: 'must be an object with "limitId", "limit", "period", and perhaps "per", "mode" and "match"',
    type: 'object',
    required: ['limitId', 'limit', 'period'],
    additionalProperties: false,
    properties: {
      limitId: LIMIT_ID,
      limit: LIMIT,
      period: PERIOD,
      per: { description: 'must be "key" or "customer"', type: 'string', enum: LIMIT_SCOPES },
      mode: { description: 'must be "enforce" or "shadow"', type: 'string', enum: LIMIT_MODES },
      match: MATCH,
    },
  },
};
const COSTS: FieldSchema = {
  description: `must be a list of at most ${MAX_COSTS} costs, of which the first that matches a request counts`,
  type: 'array',
  maxItems: MAX_COSTS,
  items: {
    title: 'WrittenRequestCost',
    description: 'must be an object with "path", "cost", and perhaps "methods" and "reserve"',
    type: 'object',
    required: ['path', 'cost'],
    additionalProperties: false,
    // Only a cost that the backend reports has a reserve; other costs are known before the request is sent.
    dependentSchemas: { reserve: { properties: { cost: { const: 'response' } } } },
    properties: {
      methods: METHODS,
      path: PATH,
      cost: {
        description:
          'must be an integer from 0 to 999999999999999, or "response" where the backend reports it; only then may "reserve" stand beside it',
        type: ['integer', 'string'],
        minimum: 0,
        maximum: 999_999_999_999_999,
        pattern: '^response$',
      },
      reserve: LIMIT,
    },
  },
};

/** The terms of a plan in a body; the lists may be missing. */
type WrittenTerms = Omit<PlanTerms, 'additionalLimits' | 'costs'> &
  Partial<Pick<PlanTerms, 'additionalLimits' | 'costs'>>;

export interface CreatePlanBody extends WrittenTerms {
  readonly rateLimitId: string;
}
export const CREATE_PLAN_BODY = bodySchema(['rateLimitId', 'description', 'limit', 'period'], {
  rateLimitId: RATE_LIMIT_ID,
  description: DESCRIPTION,
  limit: LIMIT,
  period: PERIOD,
  additionalLimits: ADDITIONAL_LIMITS,
  costs: COSTS,
});

/** The id of a plan where it is in the path. */
export const PLAN_ID_BODY = bodySchema(['rateLimitId'], { rateLimitId: RATE_LIMIT_ID });

export interface PutPlanBody extends Omit<WrittenTerms, 'description'> {
  readonly rateLimitId?: string;
  readonly description?: string;
}
export const PUT_PLAN_BODY: BodySchema = {
  ...CREATE_PLAN_BODY,
  required: ['limit', 'period'],
};

export type UpdatePlanBody = Partial<WrittenTerms>;
const { rateLimitId: _, ...CHANGEABLE } = CREATE_PLAN_BODY.properties;
export const UPDATE_PLAN_BODY = editSchema(CHANGEABLE);
