import type { LimitMode, LimitScope } from '../limiter/request-limits.ts';
import type { PathPattern } from '../paths/path-pattern.ts';

/** A rate limit plan: how much the requests of a key may cost in one window, or in several at once. */
export interface Plan extends PlanTerms {
  /** Chosen by the plan's author: `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`. */
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  /** Milliseconds since 1970; equals `createdAtMs` if the plan was never changed. */
  readonly updatedAtMs: number;
  /** Grows by one with every change. */
  readonly version: number;
  /** The owner of the configuration that manages the plan; null = it was made through the API. */
  readonly managedBy: string | null;
}

/** The fields of a plan that its author sets. */
export interface PlanTerms {
  /** 0 … 1024 characters. */
  readonly description: string;
  /** The limit `main`: 1 … 999 999 999 999 999 in one window. */
  readonly limit: number;
  /** The window's length as the author wrote it; `parsePeriod` reads it. */
  readonly period: string;
  /** At most 7. */
  readonly additionalLimits: readonly AdditionalLimit[];
  /** At most 32. The first cost that matches a request applies; without one, the request costs 1. */
  readonly costs: readonly PlanCost[];
}

/** A limit in addition to the plan's `main`, as its author wrote it. */
export interface AdditionalLimit {
  /** Unique in the plan, at most 32 characters, not `main`. */
  readonly limitId: string;
  /** 1 … 999 999 999 999 999. */
  readonly limit: number;
  readonly period: string;
  /** Missing: `key`. */
  readonly per?: LimitScope;
  /** Missing: `enforce`. */
  readonly mode?: LimitMode;
  /** The limit applies to requests that match any of these; missing: to every request. */
  readonly match?: readonly PathPattern[];
}

/** The cost of the requests of a pattern, as the plan's author wrote it. */
export interface PlanCost extends PathPattern {
  /** 0 … 999 999 999 999 999, or `response`: the backend reports it. */
  readonly cost: number | 'response';
  /** The units reserved until the backend reports the cost; only with `response`. Missing: 1. */
  readonly reserve?: number;
}
