import type { BackendConnections, NoPlace } from '../../backend/pool/places.ts';
import type { TollgateError } from '../../errors.ts';
import type { KeySnapshot } from '../../keys/consumer-key.ts';
import type { CostSettler } from '../../limiter/cost-settler.ts';
import { type LimitSubject, WITHOUT_LIMITS } from '../../limiter/rate-limiter.ts';
import { customerOf } from '../../limiter/request-limits.ts';
import type { ThresholdWatch } from '../../limiter/threshold-watch.ts';
import type { PathCase } from '../../paths/path-readings.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Exchange, LimitDecision, Step } from '../exchange.ts';
import { overloaded, type PlaceKind } from '../forwarding/backend-errors.ts';
import { unavailable } from '../key-errors.ts';
import { CurrentKey, type CurrentKeyOptions } from './authenticate.ts';

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
    if (exchange.entry !== undefined && !exchange.hasResponse) {
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
function tooLate(
  { startedAtMs }: Exchange,
  { backendTimeoutMs, clock }: BackendDeadline,
): TollgateError | undefined {
  return clock.monotonicMs() - startedAtMs < backendTimeoutMs
    ? undefined
    : unavailable(new Error('The stores took as long as the backend may.'));
}

/** What the rate limit step needs. */
export interface LimitOptions extends CurrentKeyOptions, BackendDeadline {
  /** Name of the request header that names the customer, lower case. */
  readonly customerIdHeader: string;
  readonly pathCase: PathCase;
  /** Undefined: no threshold is watched. */
  readonly thresholds?: ThresholdWatch | undefined;
}

/** Decides by the limits of the key's plan. What a limit rejects is noted for a later step: it is recorded like any other request of the key. */
export function limit(options: LimitOptions): Step {
  return decideWith(options, {
    subjectOf: (exchange, key) => subjectOfPlan(exchange, key, options),
    note(exchange, decision) {
      exchange.decision = decision;
      noteThresholds(exchange, decision, options);
    },
  });
}

function noteThresholds(
  { entry, req, units }: Exchange,
  decision: LimitDecision,
  { thresholds, customerIdHeader }: LimitOptions,
): void {
  if (thresholds === undefined || entry === undefined || decision.kind !== 'allowed') return;
  const { windows, nowMs, degraded } = decision;
  if (degraded || !thresholds.isPassed(windows, units)) return;
  const { keyId, plan } = entry.snapshot;
  const customerId = customerOf(req.headers[customerIdHeader]);
  const mayRelease = plan?.limits.hasReportedCosts === true;
  thresholds.note({ keyId, customerId, windows, units, nowMs, mayRelease });
}

/** What a decision is about, and what becomes of it. */
interface DecisionRules {
  readonly subjectOf: (exchange: Exchange, key: KeySnapshot) => LimitSubject;
  readonly note: (exchange: Exchange, decision: LimitDecision) => void;
}

/**
 * Calls the limiter, unless the request is rejected already or its client has gone: then it is not counted. If the limiter finds the copy of
 * the key stale, the key is read and checked again and the limiter called again, so a change to a key applies from its next request on. A
 * limiter that does not respond is noted as the request's rejection.
 */
export function decideWith(
  options: CurrentKeyOptions & BackendDeadline,
  { subjectOf, note }: DecisionRules,
): Step {
  const { limiter } = options;
  const currentKey = new CurrentKey(options);
  const decide: Step = (exchange) => {
    const { entry } = exchange;
    if (exchange.reloads > 0) exchange.rejection ??= tooLate(exchange, options);
    if (exchange.rejection !== undefined || entry === undefined || exchange.hasResponse) {
      exchange.next();
      return;
    }
    limiter.decide(subjectOf(exchange, entry.snapshot), (decision) => {
      if (decision.kind === 'stale') {
        currentKey.reload(exchange, entry, decide);
        return;
      }
      if (decision.kind === 'unavailable') exchange.rejection = unavailable(decision.cause);
      else note(exchange, decision);
      exchange.next();
    });
  };
  return decide;
}

const NONE: readonly string[] = [];

function subjectOfPlan(
  exchange: Exchange,
  { keyId, version, plan }: KeySnapshot,
  { customerIdHeader, pathCase }: LimitOptions,
): LimitSubject {
  const { req, head, isFresh } = exchange;
  if (plan === null) {
    // The copy before this one may have had a plan with costs.
    exchange.units = exchange.costIn(null, NONE).units;
    exchange.reserved = undefined;
    return { keyId, version, fresh: isFresh, ...WITHOUT_LIMITS };
  }
  const { limits } = plan;
  const method = req.method ?? '';
  const others = limits.hasPatterns ? exchange.otherReadings(pathCase) : NONE;
  const cost = exchange.costIn(limits, others);
  const subject = {
    keyId,
    version,
    fresh: isFresh,
    limits: limits.limitsFor(method, head.path, others),
    cost: cost.units,
    customerId: limits.hasCustomerLimits ? customerOf(req.headers[customerIdHeader]) : '',
    mayRelease: limits.hasReportedCosts,
  };
  exchange.units = cost.units;
  exchange.reserved = cost.isReported ? subject : undefined;
  return subject;
}

/**
 * Settles a reserved cost exactly once, when the response is over, however it ended: only the backend knows the real cost. Must come
 * after `record`, whose `onClosed` it extends.
 */
export function settle(settler: CostSettler): Step {
  return (exchange) => {
    const { reserved, decision, onClosed } = exchange;
    if (reserved !== undefined && decision?.kind === 'allowed') {
      if (exchange.isClosed) settler.settle(reserved, decision, undefined);
      else {
        const recordAndSettle = (closed: Exchange): void => {
          onClosed?.(closed);
          settler.settle(reserved, decision, closed.reportedCost);
        };
        // A function written directly into the property would be created in V8's old generation, and keep the decision in memory.
        exchange.onClosed = recordAndSettle;
      }
    }
    exchange.next();
  };
}
