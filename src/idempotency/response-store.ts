/** What became of a request: performed now, performed before, or under way at this moment. */
export type PerformedOnce =
  | { readonly kind: 'performed' | 'stored'; readonly sealed: Buffer }
  | { readonly kind: 'under_way' };

/** A request to be performed once. */
export interface OnceOnly {
  /** 32 bytes. */
  readonly id: Buffer;
  readonly atMs: number;
  /** A response from before has lapsed. Milliseconds since 1970. */
  readonly validSinceMs: number;
}

/** A response as it is stored. */
export interface StoredResponse {
  readonly id: Buffer;
  readonly sealed: Buffer;
}

/** Where responses are kept. Every method rejects with `StoreUnavailable` when the store does not respond. */
export interface ResponseStore {
  /**
   * Performs the work unless there is a response under the id, and stores its response in the transaction of the changes that it makes:
   * a crash leaves both or neither. Of several calls with the same id at once, on any replica, one performs.
   *
   * When the work rejects, its changes are undone and `responseTo` gives the response to be stored; where that rejects too, nothing is stored.
   */
  performOnce(
    request: OnceOnly,
    work: () => Promise<Buffer>,
    responseTo: (failure: unknown) => Buffer,
  ): Promise<PerformedOnce>;
  /** Removes the responses from before an instant. */
  prune(beforeMs: number): Promise<void>;
  /** At most `limit` responses, by id, after the one given: for the rotation of encryption keys. */
  after(id: Buffer | undefined, limit: number): Promise<readonly StoredResponse[]>;
  /** Replaces the sealed form of a response, unless it was removed or replaced meanwhile. */
  replace(response: StoredResponse, sealed: Buffer): Promise<void>;
}
