/** The result for a request: performed now, or performed before, or in progress. */
export type PerformedOnce =
  | { readonly kind: 'performed' | 'stored'; readonly sealed: Buffer }
  | { readonly kind: 'under_way' };

/** A request to be performed once. */
export interface OnceOnly {
  /** 32 bytes. */
  readonly id: Buffer;
  readonly atMs: number;
  /** Older responses have expired. Milliseconds since 1970. */
  readonly validSinceMs: number;
}

/** A response as it is stored. */
export interface StoredResponse {
  readonly id: Buffer;
  readonly sealed: Buffer;
}

/** Stores responses. `Unit` is a unit of work in the record store. Every method rejects with `StoreUnavailable` if the store does not respond. */
export interface ResponseStore<Unit> {
  /**
   * Performs the work unless a response is stored under the id. Stores the response in the unit of work that the changes of the work belong
   * to: a crash leaves both or neither. Of several concurrent calls with the same id, also on different replicas, one performs the work.
   *
   * If the work rejects, its changes are rolled back, and the response from `responseTo` is stored. If that throws, too, nothing is stored.
   */
  performOnce(
    request: OnceOnly,
    work: (unit: Unit) => Promise<Buffer>,
    responseTo: (failure: unknown) => Buffer,
  ): Promise<PerformedOnce>;
  /** Removes responses that are older than `keptMs` at `nowMs` and by the clock of the store. Ends early once `goesOn` returns false. */
  prune(nowMs: number, keptMs: number, goesOn?: () => boolean): Promise<void>;
  /** At most `limit` responses, by id, after the given one. For the rotation of encryption keys. */
  after(id: Buffer | undefined, limit: number): Promise<readonly StoredResponse[]>;
  /** Replaces a sealed response. Resolves with false if it was removed or replaced in the meantime. */
  replace(response: StoredResponse, sealed: Buffer): Promise<boolean>;
}
