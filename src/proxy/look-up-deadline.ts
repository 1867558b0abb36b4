import { StoreUnavailable } from '../errors.ts';
import type { Clock } from '../platform/clock.ts';
import type { Exchange } from './exchange.ts';

/**
 * Longest that a request waits for the record store, from its start. With a call of Redis on top it must be less than the 5 s after which
 * the documented gateways in front take Tollgate for away, and may let the request through. Milliseconds.
 */
const LOOK_UP_TIMEOUT_MS = 4000;

/** Responds to a look-up: an error, or what was found. */
type LookUpEnded<Found> = (error: Error | null, found?: Found, isFresh?: boolean) => void;

/**
 * The callback of a look-up for this request. Calls `ended` with `StoreUnavailable` if the look-up takes too long. What it finds later may
 * be cached, but does nothing for the request, which has its response and must not be counted.
 */
export function untilDeadline<Found>(
  { startedAtMs }: Pick<Exchange, 'startedAtMs'>,
  clock: Clock,
  ended: LookUpEnded<Found>,
): LookUpEnded<Found> {
  let isOver = false;
  const end: LookUpEnded<Found> = (...result) => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    ended(...result);
  };
  const leftMs = Math.max(0, startedAtMs + LOOK_UP_TIMEOUT_MS - clock.monotonicMs());
  // One turn later, so that a result which arrived while the process was busy is read first.
  const timer = setTimeout(() => setImmediate(end, tooLate()), leftMs).unref();
  return end;
}

function tooLate(): StoreUnavailable {
  return new StoreUnavailable('postgres', new Error('The look-up took too long.'));
}
