import type { BackendConnection } from '../connection.ts';

/** A request that needs a connection to the backend. */
export interface BackendJob {
  /** Called once for each attempt, each time with another connection. `nowMs` is the time by the monotonic clock. */
  begin(connection: BackendConnection, nowMs: number): void;
  /** Called with what `begin` threw. The connection is closed already. */
  onError(error: unknown): void;
}

/** A job that was given a place, until it is over. */
export interface Ticket {
  /** Cancels a job that has not begun. Does nothing for one that has. */
  withdraw(): void;
  /** To be called after the connection closed: the job begins again, on the next connection that is free. */
  retry(): void;
}

/** Room for one request, with the backend or in the queue for it. Exactly one of the two methods must be called, once. */
export interface BackendPlace {
  /** Uses the place: the job begins now or later. `nowMs` is the time by the monotonic clock. */
  request(job: BackendJob, nowMs: number): Ticket;
  /** Gives the place back unused. */
  cancel(): void;
}

/** Why there is no place: the queue is full, or the share of this fairness key is used up. */
export type NoPlace = 'full' | 'key_full';

/** Where connections to the backend come from. */
export interface BackendConnections {
  /** Takes a place. Requests with the same fairness key (any string) share one part of the places. */
  reserve(fairnessKey: string): BackendPlace | NoPlace;
  /** Connections made since the start. */
  readonly connects: number;
  /** Closes all connections: requests in progress fail, waiting ones never begin. */
  destroy(): void;
}
