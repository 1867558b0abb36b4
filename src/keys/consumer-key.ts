import type { Quota } from '../limiter/rate-limiter.ts';

/** A consumer key's record. The secret is never part of it. */
export interface ConsumerKey {
  /** `key_` and a ULID; newer keys sort after older ones. */
  readonly id: string;
  /** 1 … 255 characters, trimmed, no control characters. Need not be unique. */
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  /** Milliseconds since 1970; equals `createdAtMs` for a key never changed. */
  readonly updatedAtMs: number;
  readonly enabled: boolean;
  /** From this instant on the key is refused as expired; null = never. Milliseconds since 1970. */
  readonly expiresAtMs: number | null;
  /** The plan bound to the key; null = the default plan applies. */
  readonly planId: string | null;
}

/** What a replica must know to answer a request made with a key. Immutable; a change makes a new one. */
export interface KeyGrant {
  readonly keyId: string;
  /** `<key version>.<plan version>`: differs whenever anything in the grant does. */
  readonly version: string;
  readonly enabled: boolean;
  /** As in `ConsumerKey`. */
  readonly expiresAtMs: number | null;
  /** The plan that applies (its own, else the default one); null = unlimited. */
  readonly plan: GrantedPlan | null;
}

/** The plan of a grant, with its period read. */
export interface GrantedPlan extends Quota {
  readonly id: string;
  /** The period as the plan's author wrote it. */
  readonly periodText: string;
}
