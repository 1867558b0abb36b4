import { InvalidBody, MissingScope } from '../../errors.ts';
import { missingScope } from '../../permissions/principal.ts';
import type { Plan, PlanTerms } from '../../plans/plan.ts';
import { definedFields } from '../../platform/defined-fields.ts';
import { bodyCheck } from '../body-check.ts';
import { type Endpoint, Reply } from '../endpoint.ts';
import { pageSchema } from '../list-page.ts';
import { COUNT, objectOf, TEXT } from '../response-schemas.ts';
import { PLAN_DELETION_QUERY, PLAN_LIST_QUERY, readPlanListQuery, readRebindTo } from './plan-query.ts';
import {
  CREATE_PLAN_BODY,
  type CreatePlanBody,
  PLAN_ID_BODY,
  PUT_PLAN_BODY,
  type PutPlanBody,
  UPDATE_PLAN_BODY,
  type UpdatePlanBody,
} from './plan-schema.ts';
import { CREATED_PLAN, LISTED_PLAN, PLAN, presentCreated, presentPlan } from './shown-plan.ts';

const checkPlanId = bodyCheck(PLAN_ID_BODY);

/** Creates a plan. The response has its fields exactly as they were sent. */
export const createRateLimit: Endpoint<CreatePlanBody> = {
  method: 'post',
  path: '/rate-limit/create',
  operationId: 'createRateLimit',
  summary: 'Create a rate limit plan',
  scope: 'plans:write',
  body: CREATE_PLAN_BODY,
  status: 201,
  tagged: true,
  headers: ['Tollgate-Applies-Within'],
  response: CREATED_PLAN,
  errors: ['pattern_not_canonical', 'plan_exists'],
  async handle({ body, change }, { plans, log }) {
    const plan = await plans.create({ id: body.rateLimitId, ...readTerms(body) }, change);
    log.info({ event: 'plan_created', planId: plan.id }, 'a rate limit plan was created');
    return Reply.created(locationOf(plan), plan, presentCreated(plan));
  },
};

/** Lists all plans by id. */
export const listRateLimits: Endpoint = {
  method: 'get',
  path: '/rate-limit',
  operationId: 'listRateLimits',
  summary: 'List rate limit plans',
  scope: 'plans:read',
  query: PLAN_LIST_QUERY,
  status: 200,
  response: pageSchema('rateLimits', LISTED_PLAN, 'plans'),
  errors: ['invalid_cursor'],
  async handle({ query, principal }, { plans }) {
    const { filter, limit, afterId, isCounted, hasKeys, cursorAfter } = readPlanListQuery(query);
    const [found, total] = await Promise.all([
      // One more than requested shows whether there is a next page.
      plans.list(definedFields({ ...filter, afterId, limit: limit && limit + 1 })),
      isCounted ? plans.count(filter) : undefined,
    ]);
    const page = found.slice(0, limit);
    const last = page.at(-1);
    const bound = hasKeys
      ? await plans.countBound(
          page.map(({ id }) => id),
          principal.onlyTags,
        )
      : undefined;
    return {
      rateLimits: page.map((plan) => ({
        ...presentPlan(plan),
        ...(bound !== undefined && { boundKeys: bound.get(plan.id)?.boundKeys ?? 0 }),
      })),
      nextCursor: found.length > page.length && last !== undefined ? cursorAfter(last.id) : undefined,
      total,
    };
  },
};

/** Shows one plan. */
export const showRateLimit: Endpoint = {
  method: 'get',
  path: '/rate-limit/{rateLimitId}',
  operationId: 'showRateLimit',
  summary: 'Show a rate limit plan',
  scope: 'plans:read',
  status: 200,
  tagged: true,
  response: PLAN,
  errors: ['plan_not_found'],
  async handle({ id }, { plans }) {
    const plan = await plans.get(id);
    return Reply.tagged(plan, presentPlan(plan));
  },
};

/** Creates a plan or replaces an existing one: a missing field has the value that it has in a new plan. */
export const putRateLimit: Endpoint<PutPlanBody> = {
  method: 'put',
  path: '/rate-limit/{rateLimitId}',
  operationId: 'putRateLimit',
  summary: 'Create or replace a rate limit plan',
  scope: 'plans:write',
  body: PUT_PLAN_BODY,
  status: 200,
  mayCreate: true,
  tagged: true,
  conditional: true,
  headers: ['Tollgate-Applies-Within'],
  response: PLAN,
  errors: ['pattern_not_canonical'],
  async handle({ id, body, change }, { plans, log }) {
    checkPlanId({ rateLimitId: id });
    if (body.rateLimitId !== undefined && body.rateLimitId !== id) {
      throw new InvalidBody([{ field: 'rateLimitId', message: 'must be the same as in the path' }]);
    }
    const { plan, isNew } = await plans.put({ id, ...readTerms(body) }, change);
    const event = isNew ? 'plan_created' : 'plan_updated';
    log.info({ event, planId: plan.id }, 'a rate limit plan was written');
    const shown = presentPlan(plan);
    return isNew ? Reply.created(locationOf(plan), plan, shown) : Reply.tagged(plan, shown);
  },
};

/** Changes a plan for all its keys, from their next request on. A list replaces the whole list of the plan. */
export const updateRateLimit: Endpoint<UpdatePlanBody> = {
  method: 'patch',
  path: '/rate-limit/{rateLimitId}',
  operationId: 'updateRateLimit',
  summary: 'Change a rate limit plan',
  scope: 'plans:write',
  body: UPDATE_PLAN_BODY,
  status: 200,
  tagged: true,
  conditional: true,
  headers: ['Tollgate-Applies-Within'],
  response: PLAN,
  errors: ['pattern_not_canonical', 'plan_not_found'],
  async handle({ id, body, change }, { plans, log }) {
    const plan = await plans.update(id, readChanges(body), change);
    log.info({ event: 'plan_updated', planId: plan.id }, 'a rate limit plan was changed');
    return Reply.tagged(plan, presentPlan(plan));
  },
};

/** Deletes a plan that no key is bound to. */
export const deleteRateLimit: Endpoint = {
  method: 'delete',
  path: '/rate-limit/{rateLimitId}',
  operationId: 'deleteRateLimit',
  summary: 'Delete a rate limit plan that no key uses, or bind its keys to another one',
  scope: 'plans:write',
  query: PLAN_DELETION_QUERY,
  status: 200,
  conditional: true,
  headers: ['Tollgate-Applies-Within'],
  response: objectOf(
    { rateLimitId: TEXT, message: TEXT },
    { reboundKeys: { ...COUNT, description: 'With rebindTo: the keys that have the other plan now.' } },
  ),
  errors: ['plan_not_found', 'plan_in_use', 'plan_is_default'],
  async handle({ id, query, change, principal }, { plans, log }) {
    const rebindTo = readRebindTo(query, id);
    const missing = rebindTo === undefined ? undefined : missingScope(principal, 'keys:write');
    if (missing !== undefined) throw new MissingScope(missing);
    const reboundKeys = rebindTo === undefined ? undefined : await plans.replace(id, rebindTo, change);
    if (rebindTo === undefined) await plans.remove(id, change);
    log.info({ event: 'plan_deleted', planId: id, rebindTo, reboundKeys }, 'a rate limit plan was deleted');
    const deleted = { rateLimitId: id, message: 'The rate limit plan was deleted.' };
    return reboundKeys === undefined ? deleted : { ...deleted, reboundKeys };
  },
};

/** The path of a plan. Its id needs no escaping. */
function locationOf({ id }: Plan): string {
  return `/rate-limit/${id}`;
}

/** The terms of a new plan. */
export function readTerms(
  body: Omit<CreatePlanBody, 'rateLimitId' | 'description'> & { description?: string },
): PlanTerms {
  const { description = '', limit, period, additionalLimits = [], costs = [] } = body;
  return { description, limit, period, additionalLimits, costs };
}

function readChanges(body: UpdatePlanBody): Partial<PlanTerms> {
  const { description, limit, period, additionalLimits, costs } = body;
  return definedFields({ description, limit, period, additionalLimits, costs });
}
