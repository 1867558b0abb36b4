import { BackendError } from '../../backend/backend-error.ts';
import { type ErrorCode, StoreUnavailable } from '../../errors.ts';
import type { PreviousSecretUses } from '../../keys/secrets/previous-secret-uses.ts';
import { reportedUnits } from '../../limiter/cost-settler.ts';
import { customerOf, rejectingWindow, shadowRejectionsOf } from '../../limiter/request-limits.ts';
import type { Outcome } from '../../observability/outcomes.ts';
import { PathMatcher } from '../../paths/path-matcher.ts';
import type { PathCase } from '../../paths/path-readings.ts';
import { isSuccessful, type UsageRecorder } from '../../usage/usage-buffer.ts';
import type { Exchange, LimitDecision, Step } from '../exchange.ts';

/** Why a request got a 5xx from the gateway, or a response that was cut off. */
interface RequestFailure {
  /** As `failureCause` says. */
  readonly cause: string | undefined;
  /** The store that did not respond; undefined when the failure had another cause. */
  readonly store: StoreUnavailable['store'] | undefined;
  /** Whether there was no connection to the backend. */
  readonly isUnreachable: boolean;
  /** How often the request was sent to the backend; 0 = never. */
  readonly attempts: number;
}

/** What metrics, log and traces get of a closed request. No secrets: only request id, method and path may come from the client. */
export interface ExchangeSummary {
  /** The client's `X-Request-Id` if it was valid, else a random one. */
  readonly requestId: string;
  /** Undefined while tracing is off. */
  readonly traceId: string | undefined;
  readonly method: string;
  /** Without query. */
  readonly path: string;
  /** As sent to the client; 0 when the client left before there was one. */
  readonly status: number;
  readonly outcome: Outcome;
  /** Of the error that the gateway sent, or for which it cut the response; undefined when there was none. */
  readonly errorCode: ErrorCode | undefined;
  /** Why the gateway or the backend failed; undefined when neither did. */
  readonly failure: RequestFailure | undefined;
  /** From the request's start to the response's end. Milliseconds. */
  readonly durationMs: number;
  /** `durationMs` without the backend's part. Milliseconds. */
  readonly gatewayMs: number;
  /** When the backend's part ended, by the monotonic clock; null = it did not begin or did not end. */
  readonly backendEndedAtMs: number | null;
  /** Bytes of the response's body that came from the backend. */
  readonly bodyBytes: number;
  /** Undefined for a request that was not authenticated. */
  readonly keyId: string | undefined;
  /** Undefined when nothing was decided. */
  readonly decision: LimitDecision | undefined;
  /** The limit that rejected the request; undefined when none did. */
  readonly limitId: string | undefined;
  /** Shadow limits that would have rejected it, although it was allowed. */
  readonly shadowLimitIds: readonly string[];
}

/** The summary of an exchange that is closed. `unsent` is the outcome of a response that was not sent completely for no other reason. */
export function summaryOf(exchange: Exchange, unsent: Outcome = 'client_gone'): ExchangeSummary {
  const { req, head, startedAtMs, closedAtMs, forwardedAtMs, backendEndedAtMs } = exchange;
  const durationMs = closedAtMs - startedAtMs;
  const backendMs = forwardedAtMs === null ? 0 : (backendEndedAtMs ?? closedAtMs) - forwardedAtMs;
  const hasEnding = exchange.isSent || exchange.isCut;
  const outcome = hasEnding ? exchange.outcome : unsent;
  return {
    requestId: exchange.requestId,
    traceId: exchange.trace?.traceId,
    method: req.method ?? '',
    path: head.path,
    status: exchange.status,
    outcome,
    errorCode: hasEnding ? exchange.errorCode : undefined,
    failure: failureOf(exchange),
    durationMs,
    gatewayMs: durationMs - backendMs,
    backendEndedAtMs,
    bodyBytes: exchange.bodyBytes,
    keyId: exchange.entry?.snapshot.keyId,
    decision: exchange.decision,
    limitId: limitIdOf(exchange.decision),
    shadowLimitIds: shadowLimitIdsOf(exchange.decision),
  };
}

function limitIdOf(decision: LimitDecision | undefined): string | undefined {
  return decision?.kind === 'limited' ? rejectingWindow(decision.windows)?.limit.id : undefined;
}

/** The shadow limits that would have rejected an allowed request. For a limited request they would have changed nothing: none. */
function shadowLimitIdsOf(decision: LimitDecision | undefined): readonly string[] {
  return decision?.kind === 'allowed' ? shadowRejectionsOf(decision.windows) : NONE;
}

const NONE: readonly string[] = [];

const SERVER_ERROR = 500;

function failureOf({ error, attempts, outcome, status }: Exchange): RequestFailure | undefined {
  if (error === undefined || (outcome !== 'truncated' && status < SERVER_ERROR)) return undefined;
  const { cause } = error;
  const isUnreachable =
    cause instanceof BackendError && (cause.kind === 'connect_failed' || cause.kind === 'connect_timeout');
  const store = error instanceof StoreUnavailable ? error.store : undefined;
  return { cause: failureCause(cause ?? error), store, isUnreachable, attempts };
}

/** Longest chain of causes that is followed. */
const DEPTH = 5;

/**
 * The cause of a failure, for the log: what happened on a backend connection ("reset in the response head"), else the system's code
 * (`ECONNREFUSED`, `ENOTFOUND`, `CERT_HAS_EXPIRED`), else the name of the innermost error. Never a message from other code: it could
 * repeat what a client or a backend sent.
 */
function failureCause(error: unknown): string | undefined {
  let found: string | undefined;
  let cause = error;
  for (let depth = 0; depth < DEPTH && cause instanceof Error; depth += 1) {
    if (cause instanceof BackendError && cause.kind !== 'connect_failed') return cause.message;
    if ('code' in cause && typeof cause.code === 'string' && cause.code === cause.code.toUpperCase()) {
      return cause.code;
    }
    found = cause.name;
    cause = cause.cause;
  }
  return found;
}

/** Where usage is recorded, and under which customer and endpoint. */
export interface RecordOptions {
  readonly usage: UsageRecorder;
  /** Name of the request header that names the customer, lower case. */
  readonly customerIdHeader: string;
  /** Path patterns: a path is counted under the first one that it matches, otherwise as it is. */
  readonly endpointPatterns: readonly string[];
  readonly pathCase: PathCase;
  /** Records that the previous secret of a key is still used. */
  readonly previousSecretUses: Pick<PreviousSecretUses, 'note'>;
}

/**
 * Records an authenticated request exactly once, when its response is over, however it ended. It subscribes before
 * anything is forwarded; a request whose client has left already is recorded at once.
 */
export function record(options: RecordOptions): Step {
  const { usage, customerIdHeader, previousSecretUses } = options;
  const endpointOf = endpointNames(options);

  function take(exchange: Exchange): void {
    if (exchange.entry === undefined) return;
    const { snapshot } = exchange.entry;
    const { status } = exchange;
    usage.record({
      keyId: snapshot.keyId,
      planId: snapshot.plan?.id ?? '',
      endpoint: endpointOf(exchange),
      customerId: customerOf(exchange.req.headers[customerIdHeader]),
      status,
      successful: isSuccessful(status, exchange.isSent),
      rateLimited: exchange.outcome === 'limited',
      shadowLimited: shadowLimitIdsOf(exchange.decision).length,
      units: unitsOf(exchange),
      responseTimeMs: exchange.forwardedAtMs === null ? null : exchange.closedAtMs - exchange.startedAtMs,
      bytesIn: exchange.requestBody?.bytes ?? 0,
      bytesOut: exchange.bodyBytes,
    });
  }

  return (exchange) => {
    const { entry } = exchange;
    if (entry !== undefined && entry.previousUntilMs !== null)
      previousSecretUses.note(entry.snapshot.keyId, entry.secretVersion);
    if (exchange.isClosed) take(exchange);
    else exchange.onClosed = take;
    exchange.next();
  };
}

/** What an allowed request cost: what the backend reported, otherwise what its plan says. */
function unitsOf({ decision, units, reserved, reportedCost }: Exchange): number {
  if (decision === undefined || decision.kind === 'limited') return 0;
  return (reserved && reportedUnits(reportedCost)) ?? units;
}

/** Without patterns, an endpoint is a path as it was sent, and nothing else is made of it. */
function endpointNames({ endpointPatterns, pathCase }: RecordOptions): (exchange: Exchange) => string {
  if (endpointPatterns.length === 0) return ({ head }) => head.path;
  const endpoints = new PathMatcher(
    endpointPatterns.map((path) => ({ pattern: { path }, value: path })),
    pathCase,
  );
  return (exchange) => {
    const { req, head } = exchange;
    return endpoints.matchAny(req.method ?? '', head.path, exchange.otherReadings(pathCase)) ?? head.path;
  };
}
