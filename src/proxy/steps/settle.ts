import type { CostSettler } from '../../limiter/cost-settler.ts';
import type { Step } from '../exchange.ts';

/**
 * Sees to it that a cost which only the backend knows is settled once, when the response is over, however it ended. Comes after the step
 * that records, whose call at the end it adds to.
 */
export function settle(settler: CostSettler): Step {
  return (exchange) => {
    const { reserved, decision, onClosed } = exchange;
    if (reserved !== undefined && decision?.kind === 'allowed' && !decision.degraded) {
      if (exchange.isClosed) settler.settle(reserved, decision, undefined);
      else {
        exchange.onClosed = (closed) => {
          onClosed?.(closed);
          settler.settle(reserved, decision, closed.reportedCost);
        };
      }
    }
    exchange.next();
  };
}
