import { hash } from 'node:crypto';
import type { paths } from '../../../client/management-api.ts';
import { parsePeriod, periodFault } from '../../../limiter/period.ts';
import { MAIN_LIMIT_ID } from '../../../limiter/request-limits.ts';
import type { ForeignLimit, LeftOut } from './foreign-keys.ts';

export type NewPlan = paths['/rate-limit/create']['post']['requestBody']['content']['application/json'];

/** The gateway accepts no more than one limit and seven additional ones, ids of 64 characters, and these counts. */
const MAX_LIMITS = 8;
const MAX_ID_LENGTH = 64;
export const MAX_COUNT = 999_999_999_999_999;

export interface PlanForLimits {
  /** Undefined for no limit. */
  readonly plan: NewPlan | undefined;
  readonly leftOut: readonly LeftOut[];
}

/** The plan with these limits, whose id says what they are: keys with the same limits share it, and a second run finds it. */
export function planFor(source: string, name: string, limits: readonly ForeignLimit[]): PlanForLimits {
  const valid = limits.filter(isValid);
  const leftOut = [...limits.filter((limit) => !isValid(limit)), ...valid.slice(MAX_LIMITS)].map((limit) => ({
    what: 'limit',
    name,
    reason: `${limit.limit} per ${limit.period} can not be a limit here${periodFaultOf(limit)}`,
  }));
  const [first, ...rest] = valid.slice(0, MAX_LIMITS);
  if (first === undefined) return { plan: undefined, leftOut };
  const { limit, period } = first;
  const additionalLimits = additionalLimitsOf(rest);
  const plan = { rateLimitId: idOf(source, valid), description: `Imported from ${source}`, limit, period };
  return { plan: { ...plan, ...(additionalLimits.length > 0 && { additionalLimits }) }, leftOut };
}

function isValid({ limit, period }: ForeignLimit): boolean {
  return isCount(limit) && parsePeriod(period) !== undefined;
}

/** Whether the gateway accepts a number as a limit. */
export function isCount(limit: number): boolean {
  return Number.isSafeInteger(limit) && limit >= 1 && limit <= MAX_COUNT;
}

function periodFaultOf({ period }: ForeignLimit): string {
  const fault = periodFault(period);
  return fault === undefined ? '' : `: ${fault}`;
}

function idOf(source: string, limits: readonly ForeignLimit[]): string {
  const words = limits.map(({ limit, period }) => `${limit}-${period.replaceAll(/[^A-Za-z0-9]+/g, '')}`);
  const id = `${source}-${words.join('-')}`;
  if (id.length <= MAX_ID_LENGTH) return id;
  const digest = hash('sha256', id).slice(0, 12);
  return `${id.slice(0, MAX_ID_LENGTH - digest.length - 1)}-${digest}`;
}

/** With an id for each, which is made of its name or its period. */
function additionalLimitsOf(limits: readonly ForeignLimit[]): NonNullable<NewPlan['additionalLimits']> {
  const taken = new Set<string>([MAIN_LIMIT_ID]);
  return limits.map(({ name, limit, period }) => {
    const word = (name ?? period).replaceAll(/[^A-Za-z0-9._-]+/g, '-').replace(/^[^A-Za-z0-9]+/, '');
    const stem = word.slice(0, 28) || 'limit';
    let limitId = stem;
    for (let count = 2; taken.has(limitId); count += 1) limitId = `${stem}-${count}`;
    taken.add(limitId);
    return { limitId, limit, period };
  });
}
