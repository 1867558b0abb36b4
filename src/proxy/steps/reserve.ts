import type { BackendConnections, NoPlace } from '../../backend/pool/places.ts';
import type { TollgateError } from '../../errors.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Exchange, Step } from '../exchange.ts';
import { overloaded, type PlaceKind } from '../forwarding/backend-errors.ts';
import { unavailable } from './current-key.ts';

/** How long a request may wait before it is sent to the backend. */
export interface BackendDeadline {
  /** Timeout of the response head, counted from the request's start. Milliseconds. */
  readonly backendTimeoutMs: number;
  readonly clock: Clock;
}

/** Where places come from, and what is called for requests that got none. */
export interface ReserveOptions extends BackendDeadline {
  readonly connections: BackendConnections;
  readonly kind: PlaceKind;
  readonly onOverloaded: (kind: PlaceKind, reason: NoPlace) => void;
}

/**
 * Takes a place with the backend, or in its queue, for an authenticated request. This step comes before the rate limit, so that a request
 * that can't be served costs no quota. An exchange that ends without using the place gives it back.
 */
export function reserve(options: ReserveOptions): Step {
  const { connections, kind, onOverloaded } = options;
  return (exchange) => {
    if (exchange.entry !== undefined && !exchange.isClosed) {
      exchange.rejection ??= tooLate(exchange, options);
      if (exchange.rejection === undefined) take(exchange, exchange.entry.snapshot.keyId);
    }
    exchange.next();
  };

  function take(exchange: Exchange, keyId: string): void {
    const place = connections.reserve(keyId);
    if (typeof place !== 'string') {
      exchange.place = place;
      return;
    }
    exchange.rejection = overloaded(kind, place);
    onOverloaded(kind, place);
  }
}

/** The error of a request that has waited for the stores as long as the backend may take; undefined for other requests. */
export function tooLate(
  { startedAtMs }: Exchange,
  { backendTimeoutMs, clock }: BackendDeadline,
): TollgateError | undefined {
  return clock.monotonicMs() - startedAtMs < backendTimeoutMs
    ? undefined
    : unavailable(new Error('The stores took as long as the backend may.'));
}
