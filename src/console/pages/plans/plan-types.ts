import type { components } from '../../../client/management-api.ts';

export type Plan = components['schemas']['RateLimit'];
export type ListedPlan = components['schemas']['ListedRateLimit'];
export type AdditionalLimit = components['schemas']['AdditionalLimit'];
export type Cost = components['schemas']['RequestCost'];
export type RequestPattern = components['schemas']['RequestPattern'];

type WrittenLimit = components['schemas']['WrittenAdditionalLimit'];
type WrittenCost = components['schemas']['WrittenRequestCost'];

/** The fields of a plan that an administrator writes. */
export interface PlanTerms extends Pick<Plan, 'description' | 'limit' | 'period'> {
  readonly additionalLimits: WrittenLimit[];
  readonly costs: WrittenCost[];
}
