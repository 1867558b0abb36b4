import type { ChangeContext } from '../../audit/change-context.ts';
import type { Handover, HandoverState } from './handover.ts';

/** A link to be stored. */
export interface NewHandover extends Omit<Handover, 'usedAtMs' | 'revokedAtMs'> {
  /** SHA-256 of the link's token. */
  readonly tokenDigest: Buffer;
  /**
   * Makes what the link keeps, encrypted, of what the key keeps of its secret; null if there is nothing to hand over. Called while the key
   * is locked.
   */
  readonly seal: (sealedSecret: Buffer | null) => Buffer | null;
}

/** A link with its state, and the name of its key; null if that was deleted. */
export interface FoundHandover {
  readonly handover: Handover;
  readonly state: HandoverState;
  readonly keyName: string | null;
}

/** A page of the links of a key, newest first. */
export interface HandoverPage {
  readonly limit: number;
  /** Only links before this one. */
  readonly beforeId?: string;
  /** The instant of the states. */
  readonly nowMs: number;
}

/** Where links are kept. A change and its entry in the audit log are one transaction. Every method rejects with `StoreUnavailable`. */
export interface HandoverRepository {
  insert(
    handover: NewHandover,
    change: ChangeContext,
  ): Promise<'made' | 'key_not_found' | 'secret_not_available'>;
  list(keyId: string, page: HandoverPage): Promise<readonly FoundHandover[]>;
  count(keyId: string): Promise<number>;
  findByDigest(tokenDigest: Buffer, nowMs: number): Promise<FoundHandover | undefined>;
  /** Revokes a link that is not used, and deletes what it keeps. Resolves with the link after that; undefined if there is none. */
  revoke(keyId: string, handoverId: string, change: ChangeContext): Promise<Handover | undefined>;
  /**
   * Hands over what an open link keeps, and deletes it: of several calls, on whichever replicas, one gets it. Without `secret` the link was not
   * open, and nothing is changed; nor is anything if `open` throws.
   */
  use(
    tokenDigest: Buffer,
    open: (handoverId: string, sealed: Buffer) => string,
    change: ChangeContext,
  ): Promise<(FoundHandover & { readonly secret?: string }) | undefined>;
  /**
   * Deletes what links keep that have expired at `nowMs` and by the clock of the store, or whose secret is no longer valid then, and links that
   * expired more than `keptMs` before. Ends early once `goesOn` returns false.
   */
  prune(nowMs: number, keptMs: number, goesOn?: () => boolean): Promise<void>;
}
