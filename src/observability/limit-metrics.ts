import { ArrayCounter } from './array-metrics.ts';

/** What is looked at of a decision. */
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
 * What the limits of plans decided: plain additions for each request. Without the ids of limits, which are as many as administrators make.
 */
export class LimitMetrics {
  readonly total = new ArrayCounter(
    'tollgate_limits_total',
    'Limits of plans that requests were checked against: allowed, or limited, which rejected the request or in shadow mode would have.',
    { outcome: OUTCOMES, mode: MODES },
  );

  /** A request is over about which was decided. A shadow limit is counted only where the request was allowed. */
  observe({ kind, windows }: ObservedDecision): void {
    if (windows === undefined) return;
    for (const { isExceeded, limit } of windows) {
      const isShadow = limit.mode === 'shadow';
      if (kind === 'allowed' || (isExceeded && !isShadow))
        this.total.add([isExceeded ? 1 : 0, isShadow ? 1 : 0]);
    }
  }
}
