import type { AdditionalLimit, Plan, PlanCost } from '../../plans/plan.ts';
import { isoSeconds } from '../../platform/timestamps.ts';
import { COUNT, INSTANT, listOf, named, objectOf, TEXT } from '../response-schemas.ts';

const PATTERN = named('RequestPattern', {
  type: 'object',
  required: ['path'],
  properties: { methods: listOf(TEXT), path: TEXT },
});
const LIMITS = {
  ...listOf(
    named(
      'AdditionalLimit',
      objectOf(
        { limitId: TEXT, limit: { type: 'integer', minimum: 1 }, period: TEXT },
        {
          per: { ...TEXT, description: '"key" where it is missing.' },
          mode: { ...TEXT, description: '"enforce" where it is missing.' },
          match: { ...listOf(PATTERN), description: 'Every request where it is missing.' },
        },
      ),
    ),
  ),
  description: 'Present only where the plan has limits beside its own.',
};
const COSTS = {
  ...listOf(
    named('RequestCost', {
      type: 'object',
      required: ['path', 'cost'],
      properties: {
        methods: listOf(TEXT),
        path: TEXT,
        cost: {
          anyOf: [
            { type: 'integer', minimum: 0 },
            { type: 'string', enum: ['response'] },
          ],
        },
        reserve: { type: 'integer', minimum: 0 },
      },
    }),
  ),
  description: 'Present only where some requests of the plan do not cost 1.',
};
/** The fields of every plan. */
export const TERMS = {
  rateLimitId: TEXT,
  description: TEXT,
  limit: { type: 'integer', minimum: 1 },
  period: TEXT,
  createdAt: INSTANT,
};
/** The fields of plans that have such a list. */
export const OPTIONAL_TERMS = { additionalLimits: LIMITS, costs: COSTS };
const OPTIONAL_FIELDS = {
  ...OPTIONAL_TERMS,
  managedBy: {
    ...TEXT,
    description:
      'The owner of the configuration that manages the plan; missing: it was made through the API.',
  },
};
export const CREATED_PLAN = named('CreatedRateLimit', objectOf(TERMS, OPTIONAL_TERMS));
const PLAN_FIELDS = { ...TERMS, lastUpdated: INSTANT };
export const PLAN = named('RateLimit', objectOf(PLAN_FIELDS, OPTIONAL_FIELDS));

/** A plan, with the fields that `include` requests. */
export const LISTED_PLAN = named(
  'ListedRateLimit',
  objectOf(PLAN_FIELDS, {
    ...OPTIONAL_FIELDS,
    boundKeys: { ...COUNT, description: 'With include=keys: the keys that are bound to it.' },
  }),
);

export function presentCreated(plan: Plan): object {
  const { id, description, limit, period, createdAtMs } = plan;
  const terms = { rateLimitId: id, description, limit, period, createdAt: isoSeconds(createdAtMs) };
  return { ...terms, ...presentLists(plan) };
}

export function presentPlan(plan: Plan): object {
  const { id, description, limit, period, createdAtMs, updatedAtMs, managedBy } = plan;
  const instants = { createdAt: isoSeconds(createdAtMs), lastUpdated: isoSeconds(updatedAtMs) };
  const terms = { rateLimitId: id, description, limit, period, ...instants, ...presentLists(plan) };
  return managedBy === null ? terms : { ...terms, managedBy };
}

/** Leaves out empty lists: a plan with only the spec's four fields shows no others. */
function presentLists({ additionalLimits, costs }: Plan): object {
  return {
    ...(additionalLimits.length === 0 ? {} : { additionalLimits: additionalLimits.map(inOrder) }),
    ...(costs.length === 0 ? {} : { costs: costs.map(costInOrder) }),
  };
}

/** Sets the order of the fields, which Postgres does not keep. */
function inOrder({ limitId, limit, period, per, mode, match }: AdditionalLimit): object {
  return { limitId, limit, period, per, mode, match };
}

function costInOrder({ methods, path, cost, reserve }: PlanCost): object {
  return { methods, path, cost, reserve };
}
