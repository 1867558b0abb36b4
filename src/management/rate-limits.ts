import { InvalidBody } from '../errors.ts';
import type { BodySchema, FieldSchema } from '../http/body-schema.ts';
import { isoSeconds } from '../http/timestamps.ts';
import { PERIOD_RULE } from '../limiter/period.ts';
import type { Plan } from '../plans/plan.ts';
import type { PlanChanges } from '../plans/plan-repository.ts';
import { INSTANT, listOf, objectOf, TEXT } from './answer-schemas.ts';
import { endpoint } from './endpoint.ts';

const RATE_LIMIT_ID: FieldSchema = {
  description:
    'must be 1 to 64 letters, digits, dots, hyphens or underscores, the first a letter or a digit, and not "create"',
  type: 'string',
  // `isPlanId`, less `create`: `/rate-limit/create` is another endpoint's path, so a plan of that name could not be shown or deleted.
  pattern: '^(?!create$)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$',
};
const DESCRIPTION: FieldSchema = {
  description: 'must be a string of at most 1024 characters without NUL or unpaired surrogates',
  type: 'string',
  maxLength: 1024,
  format: 'stored-text',
};
const LIMIT: FieldSchema = {
  description: 'must be an integer from 1 to 999999999999999',
  type: 'integer',
  minimum: 1,
  maximum: 999_999_999_999_999,
};
const PERIOD: FieldSchema = { description: PERIOD_RULE, type: 'string', format: 'period' };

interface CreatePlanBody {
  readonly rateLimitId: string;
  readonly description: string;
  readonly limit: number;
  readonly period: string;
}
const CREATE_PLAN_BODY: BodySchema = {
  type: 'object',
  required: ['rateLimitId', 'description', 'limit', 'period'],
  properties: { rateLimitId: RATE_LIMIT_ID, description: DESCRIPTION, limit: LIMIT, period: PERIOD },
};

const CREATED_PLAN = {
  rateLimitId: TEXT,
  description: TEXT,
  limit: { type: 'integer', minimum: 1 },
  period: TEXT,
  createdAt: INSTANT,
};
const PLAN = objectOf({ ...CREATED_PLAN, lastUpdated: INSTANT });

/** Makes a plan; the answer echoes its fields exactly as they were sent. */
export const createRateLimit = endpoint<CreatePlanBody>({
  method: 'post',
  path: '/rate-limit/create',
  operationId: 'createRateLimit',
  summary: 'Create a rate limit plan',
  body: CREATE_PLAN_BODY,
  status: 201,
  answer: objectOf(CREATED_PLAN),
  errors: ['plan_exists'],
  async handle({ body }, { plans, log }) {
    const { rateLimitId, description, limit, period } = body;
    const plan = await plans.create({ id: rateLimitId, description, limit, period });
    log.info({ event: 'plan_created', planId: plan.id }, 'a rate limit plan was created');
    return presentCreated(plan);
  },
});

/** Lists all plans by id. */
export const listRateLimits = endpoint({
  method: 'get',
  path: '/rate-limit',
  operationId: 'listRateLimits',
  summary: 'List rate limit plans',
  status: 200,
  answer: objectOf({ rateLimits: listOf(PLAN) }),
  errors: [],
  async handle(_call, { plans }) {
    return { rateLimits: (await plans.list()).map(presentPlan) };
  },
});

/** Shows one plan. */
export const showRateLimit = endpoint({
  method: 'get',
  path: '/rate-limit/{rateLimitId}',
  operationId: 'showRateLimit',
  summary: 'Show a rate limit plan',
  status: 200,
  answer: PLAN,
  errors: ['plan_not_found'],
  async handle({ id }, { plans }) {
    return presentPlan(await plans.get(id));
  },
});

interface UpdatePlanBody {
  readonly description?: string;
  readonly limit?: number;
  readonly period?: string;
}
const UPDATE_PLAN_BODY: BodySchema = {
  type: 'object',
  required: [],
  properties: { description: DESCRIPTION, limit: LIMIT, period: PERIOD },
};

/** Changes a plan for all keys under it, with their next request. */
export const updateRateLimit = endpoint<UpdatePlanBody>({
  method: 'patch',
  path: '/rate-limit/{rateLimitId}',
  operationId: 'updateRateLimit',
  summary: 'Change a rate limit plan',
  body: UPDATE_PLAN_BODY,
  status: 200,
  answer: PLAN,
  errors: ['plan_not_found'],
  async handle({ id, body }, { plans, log }) {
    const plan = await plans.update(id, readChanges(body));
    log.info({ event: 'plan_updated', planId: plan.id }, 'a rate limit plan was changed');
    return presentPlan(plan);
  },
});

/** Deletes a plan that no key is bound to. */
export const deleteRateLimit = endpoint({
  method: 'delete',
  path: '/rate-limit/{rateLimitId}',
  operationId: 'deleteRateLimit',
  summary: 'Delete a rate limit plan that no key uses',
  status: 200,
  answer: objectOf({ rateLimitId: TEXT, message: TEXT }),
  errors: ['plan_not_found', 'plan_in_use'],
  async handle({ id }, { plans, log }) {
    await plans.remove(id);
    log.info({ event: 'plan_deleted', planId: id }, 'a rate limit plan was deleted');
    return { rateLimitId: id, message: 'The rate limit plan was deleted.' };
  },
});

function presentCreated({ id, description, limit, period, createdAtMs }: Plan): object {
  return { rateLimitId: id, description, limit, period, createdAt: isoSeconds(createdAtMs) };
}

function presentPlan(plan: Plan): object {
  return { ...presentCreated(plan), lastUpdated: isoSeconds(plan.updatedAtMs) };
}

function readChanges({ description, limit, period }: UpdatePlanBody): PlanChanges {
  const changes: PlanChanges = {
    ...(description === undefined ? {} : { description }),
    ...(limit === undefined ? {} : { limit }),
    ...(period === undefined ? {} : { period }),
  };
  if (Object.keys(changes).length > 0) return changes;
  throw new InvalidBody([{ field: 'body', message: 'must have at least one of description, limit, period' }]);
}
