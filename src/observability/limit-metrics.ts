import { ArrayCounter } from './array-metrics.ts';

/** The part of a decision that is counted. */
interface ObservedDecision {
  readonly kind: string;
  readonly windows?: readonly {
    readonly isExceeded: boolean;
    readonly limit: { readonly mode: 'enforce' | 'shadow' };
  }[];
}

const OUTCOMES = ['allowed', 'limited'] as const;
const MODES = ['enforce', 'shadow'] as const;

/**
 * Counts the decisions of plans' limits, with plain additions for each request. It has no limit ids as labels: administrators can create
 * any number of them.
 */
export class LimitMetrics {
  readonly total = new ArrayCounter(
    'tollgate_limits_total',
    'Limits of plans that requests were checked against: allowed, or limited, which rejected the request or in shadow mode would have.',
    { outcome: OUTCOMES, mode: MODES },
  );

  /** Called when a request with a decision has ended. A shadow limit is counted only if the request was allowed. */
  observe({ kind, windows }: ObservedDecision): void {
    if (windows === undefined) return;
    for (const { isExceeded, limit } of windows) {
      const isShadow = limit.mode === 'shadow';
      if (kind === 'allowed' || (isExceeded && !isShadow))
        this.total.add([isExceeded ? 1 : 0, isShadow ? 1 : 0]);
    }
  }
}
