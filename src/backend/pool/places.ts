import type { BackendConnection } from '../connection.ts';

/** A request that needs a connection to the backend. */
export interface BackendJob {
  /** Called once for each try, with another connection, and with the time by the monotonic clock. Milliseconds. */
  begin(connection: BackendConnection, nowMs: number): void;
  /** Called with what `begin` threw. The connection is closed already. */
  onError(error: unknown): void;
}

/** A job that was given a place, until it is over. */
export interface Ticket {
  /** Ends a job that has not begun: it never will. Does nothing for one that has. */
  withdraw(): void;
  /** To be called when the connection closed: the job will begin once more, on a connection as soon as there is one. */
  retry(): void;
}

/** Room for one request, with the backend or in the line before it. Exactly one of the two is to be called, once. */
export interface BackendPlace {
  /** Uses the place: the job begins now or later. `nowMs` is the time by the monotonic clock. */
  request(job: BackendJob, nowMs: number): Ticket;
  /** Gives the place back unused. */
  cancel(): void;
}

/** Why there is no place: the queue is full, or the share of this fairness key is. */
export type NoPlace = 'full' | 'key_full';

/** Where connections to the backend come from. */
export interface BackendConnections {
  /** Takes a place. Requests with the same fairness key, which is any string, share their part of the places. */
  reserve(fairnessKey: string): BackendPlace | NoPlace;
  /** Connections made since the start. */
  readonly connects: number;
  /** Closes all connections; what is in progress fails, what waits never begins. */
  destroy(): void;
}
