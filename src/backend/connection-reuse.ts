import type { ResponseHead } from './response-head.ts';

/**
 * - `new`: no socket yet.
 * - `connecting`: its first request waits for the socket.
 * - `busy`: carries a request whose response is not complete.
 * - `idle`: carries no request. Any byte that arrives closes it.
 * - `reserved`: idle, and reserved for a request that waits until the event loop has read the socket.
 * - `switched`: the socket belongs to a tunnel now. Final.
 * - `closed`: final.
 */
export type ConnectionState = 'new' | 'connecting' | 'busy' | 'idle' | 'reserved' | 'switched' | 'closed';

/** What can happen to a connection. */
export type ConnectionEvent =
  | 'connect'
  | 'opened'
  | 'keep'
  | 'reserve'
  | 'release'
  | 'send'
  | 'switch'
  | 'close';

/** All that may happen in each state, and the state that follows. All other transitions are errors. */
const TRANSITIONS: Readonly<
  Record<ConnectionState, Readonly<Partial<Record<ConnectionEvent, ConnectionState>>>>
> = {
  new: { connect: 'connecting', close: 'closed' },
  connecting: { opened: 'busy', close: 'closed' },
  busy: { keep: 'idle', switch: 'switched', close: 'closed' },
  idle: { reserve: 'reserved', close: 'closed' },
  reserved: { send: 'busy', release: 'idle', close: 'closed' },
  switched: {},
  closed: {},
};

/** The state after the event. Throws for an event that can't happen in the state. */
export function nextState(state: ConnectionState, event: ConnectionEvent): ConnectionState {
  const next = TRANSITIONS[state][event];
  if (next === undefined) throw new Error(`A backend connection that is ${state} got the event ${event}.`);
  return next;
}

/** A request and its response, once the response is complete. */
export interface FinishedExchange {
  readonly method: string;
  /** The request had a body. */
  readonly hadBody: boolean;
  /** All of the request was written, its body included. */
  readonly isRequestSent: boolean;
  readonly head: ResponseHead;
  /** Bytes arrived after the end of the response. */
  readonly hasSurplus: boolean;
}

/** Idle timeout for a backend without `Keep-Alive` timeout: Node's servers close idle connections after 5 s. */
const IDLE_MS = 4000;
/** How much earlier than the timeout in `Keep-Alive` an idle connection is closed. */
const MARGIN_MS = 1000;
const LONGEST_IDLE_MS = 600_000;

/** Methods that usually have a body, so that every server reads it. */
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'QUERY', 'PROPFIND', 'PROPPATCH']);

/**
 * Whether a connection may carry another request after one of this kind. Some servers do not read the body of a GET and take it for
 * the next request; others send a body after the head of a response to HEAD.
 */
export function mayKeepAfter(method: string, hadBody: boolean): boolean {
  return method !== 'HEAD' && (!hadBody || WITH_BODY.has(method));
}

/**
 * How long a connection may stay idle before its next request, in milliseconds; 0 = it must be closed. It is reused only if the next
 * byte on it certainly belongs to the next response (RFC 9112 sections 6.3 and 9.3).
 */
export function reusableForMs(exchange: FinishedExchange): number {
  const { method, hadBody, isRequestSent, head, hasSurplus } = exchange;
  const { status, length, isChunked, keepsAlive, keepAliveMs } = head;
  if (!keepsAlive || !isRequestSent || hasSurplus || !mayKeepAfter(method, hadBody)) return 0;
  if (status === 204 || status === 304) {
    // There must be no body here, but a server that announces one may send it.
    if (isChunked || (length ?? 0) > 0) return 0;
  } else if (!isChunked && length === undefined) {
    return 0;
  }
  if (keepAliveMs === undefined) return IDLE_MS;
  return Math.max(0, Math.min(keepAliveMs - MARGIN_MS, LONGEST_IDLE_MS));
}
