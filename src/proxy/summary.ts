import type { Exchange, LimitDecision, Outcome } from './exchange.ts';

/** What is told of a request when its answer is over: nothing in it is secret, and nothing but the method and the path came from the client. */
export interface ExchangeSummary {
  /** The client's own where it was fit to be repeated, else ours. */
  readonly requestId: string;
  /** Undefined while tracing is off. */
  readonly traceId: string | undefined;
  readonly method: string;
  /** Without query. */
  readonly path: string;
  /** As sent to the client; 0 when the client left before there was one. */
  readonly status: number;
  readonly outcome: Outcome;
  /** From the request's start to the answer's end. Milliseconds. */
  readonly durationMs: number;
  /** The part of it that the backend had nothing to do with. Milliseconds. */
  readonly gatewayMs: number;
  /** When the backend's part was over, by the monotonic clock; null = never begun or never over. */
  readonly backendEndedAtMs: number | null;
  /** Bytes of the answer's body that came from the backend. */
  readonly bodyBytes: number;
  /** Undefined for a request that was not authenticated. */
  readonly keyId: string | undefined;
  /** Undefined when nothing was decided. */
  readonly decision: LimitDecision | undefined;
}

/** The summary of an exchange that is closed. */
export function summaryOf(exchange: Exchange): ExchangeSummary {
  const { req, res, head, startedAtMs, closedAtMs, forwardedAtMs, backendEndedAtMs } = exchange;
  const durationMs = closedAtMs - startedAtMs;
  const backendMs = forwardedAtMs === null ? 0 : (backendEndedAtMs ?? closedAtMs) - forwardedAtMs;
  const isComplete = exchange.isSwitched || res.writableFinished;
  return {
    requestId: exchange.requestId,
    traceId: exchange.trace?.traceId,
    method: req.method ?? '',
    path: head.path,
    status: exchange.isSwitched ? 101 : res.headersSent ? res.statusCode : 0,
    outcome: isComplete || exchange.outcome === 'truncated' ? exchange.outcome : 'client_gone',
    durationMs,
    gatewayMs: durationMs - backendMs,
    backendEndedAtMs,
    bodyBytes: exchange.bodyBytes,
    keyId: exchange.entry?.grant.keyId,
    decision: exchange.decision,
  };
}
