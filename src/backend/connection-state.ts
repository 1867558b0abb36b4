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
