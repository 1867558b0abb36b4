import { readWhole } from '../../../format/whole-number.ts';
import { wordsOf } from '../../../format/words-of.ts';
import type { AdditionalLimit, Cost, Plan, PlanTerms, RequestPattern } from '../plan-types.ts';

/** The form of a plan. Numbers are texts until they are sent, so that the form keeps everything that was typed. */
export interface PlanDraft {
  readonly description: string;
  readonly limit: string;
  readonly period: string;
  readonly additionalLimits: readonly LimitDraft[];
  readonly costs: readonly CostDraft[];
}

export interface LimitDraft {
  readonly limitId: string;
  readonly limit: string;
  readonly period: string;
  readonly per: 'key' | 'customer';
  readonly mode: 'enforce' | 'shadow';
  /** Empty if the limit applies to every request. */
  readonly match: readonly PatternDraft[];
}

export interface PatternDraft {
  /** Separated by spaces or commas; empty for all methods. */
  readonly methods: string;
  readonly path: string;
}

export interface CostDraft extends PatternDraft {
  readonly kind: 'fixed' | 'response';
  readonly cost: string;
  readonly reserve: string;
}

/** Messages of faulty fields, by the paths of the management interface: `additionalLimits[0].period`. */
export type DraftFaults = Readonly<Record<string, string>>;

export const EMPTY_PLAN: PlanDraft = {
  description: '',
  limit: '',
  period: 'hour',
  additionalLimits: [],
  costs: [],
};

export const EMPTY_PATTERN: PatternDraft = { methods: '', path: '' };
export const EMPTY_LIMIT: LimitDraft = {
  limitId: '',
  limit: '',
  period: 'second',
  per: 'key',
  mode: 'enforce',
  match: [],
};
export const EMPTY_COST: CostDraft = { ...EMPTY_PATTERN, kind: 'fixed', cost: '', reserve: '' };

export function draftOf({ description, limit, period, additionalLimits = [], costs = [] }: Plan): PlanDraft {
  return {
    description,
    limit: String(limit),
    period,
    additionalLimits: additionalLimits.map(limitDraftOf),
    costs: costs.map(costDraftOf),
  };
}

function limitDraftOf({ limitId, limit, period, per, mode, match = [] }: AdditionalLimit): LimitDraft {
  return {
    limitId,
    limit: String(limit),
    period,
    per: per === 'customer' ? per : 'key',
    mode: mode === 'shadow' ? mode : 'enforce',
    match: match.map(patternDraftOf),
  };
}

function patternDraftOf({ methods = [], path }: RequestPattern): PatternDraft {
  return { methods: methods.join(' '), path };
}

function costDraftOf(cost: Cost): CostDraft {
  const isReported = cost.cost === 'response';
  return {
    ...patternDraftOf(cost),
    kind: isReported ? 'response' : 'fixed',
    cost: isReported ? '' : String(cost.cost),
    reserve: cost.reserve === undefined ? '' : String(cost.reserve),
  };
}

/**
 * The terms in a draft, and the faults of its fields. The gateway checks further rules, and reports faults with the same paths.
 */
export function readDraft(draft: PlanDraft): { readonly terms: PlanTerms; readonly faults: DraftFaults } {
  const faults: Record<string, string> = {};
  const whole = (text: string, field: string, least: number): number => {
    const { value, fault } = readWhole(text, least);
    if (fault !== undefined) faults[field] = fault;
    return value;
  };
  const present = (text: string, field: string, message: string): string => {
    const trimmed = text.trim();
    if (trimmed === '') faults[field] = message;
    return trimmed;
  };
  const pattern = ({ methods, path }: PatternDraft, field: string): RequestPattern => {
    const names = wordsOf(methods.toUpperCase());
    return {
      ...(names.length > 0 && { methods: names }),
      path: present(path, `${field}.path`, 'Enter a path.'),
    };
  };
  const terms: PlanTerms = {
    description: draft.description,
    limit: whole(draft.limit, 'limit', 1),
    period: present(draft.period, 'period', 'Enter a period.'),
    additionalLimits: draft.additionalLimits.map(({ limitId, limit, period, per, mode, match }, index) => {
      const field = `additionalLimits[${index}]`;
      return {
        limitId: present(limitId, `${field}.limitId`, 'Give the limit a name.'),
        limit: whole(limit, `${field}.limit`, 1),
        period: present(period, `${field}.period`, 'Enter a period.'),
        ...(per === 'customer' && { per }),
        ...(mode === 'shadow' && { mode }),
        ...(match.length > 0 && { match: match.map((each, at) => pattern(each, `${field}.match[${at}]`)) }),
      };
    }),
    costs: draft.costs.map(({ kind, cost, reserve, ...path }, index) => {
      const field = `costs[${index}]`;
      const matched = pattern(path, field);
      if (kind === 'fixed') return { ...matched, cost: whole(cost, `${field}.cost`, 0) };
      const reserved = reserve.trim() === '' ? {} : { reserve: whole(reserve, `${field}.reserve`, 1) };
      return { ...matched, cost: 'response' as const, ...reserved };
    }),
  };
  return { terms, faults };
}

/** The terms of a plan as the form would send them: defaults that only the gateway writes out are not a difference. */
export function termsOf(plan: Plan): PlanTerms {
  return readDraft(draftOf(plan)).terms;
}
