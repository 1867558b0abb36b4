import type { LimitOverrides } from '../limiter/limit-overrides.ts';
import type { RequestLimits } from '../limiter/request-limits.ts';
import type { KeyRestrictions } from './key-restrictions.ts';

/** What an administrator may let the consumer of a key do. */
export const SELF_SERVICE_ACTIONS = ['rotate'] as const;
export type SelfServiceAction = (typeof SELF_SERVICE_ACTIONS)[number];

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
  /** Grows by one with every change. */
  readonly version: number;
  readonly enabled: boolean;
  /** From this instant on the key is expired; null = never. Milliseconds since 1970. */
  readonly expiresAtMs: number | null;
  /** The plan bound to the key; null = the default plan applies. */
  readonly planId: string | null;
  /** The key's owner in the administrator's own system, 1 … 128 characters; null = not noted. Need not be unique. */
  readonly externalId: string | null;
  /** At most 20, each once, in the order in which they were given. */
  readonly tags: readonly string[];
  /** Anything that an administrator notes of the key: a JSON object. Null = nothing. */
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** Limits of this key that differ from its plan's. */
  readonly overrides: LimitOverrides;
  /** The only addresses and networks from which the key may be used, 1 … 100, as they were given; null = any. */
  readonly allowedIps: readonly string[] | null;
  /** Origins of the only web pages that may use the key, 1 … 20; null = any. */
  readonly allowedOrigins: readonly string[] | null;
  /** What its consumer may do with the key itself, each once. */
  readonly selfService: readonly SelfServiceAction[];
  /** The owner of the configuration that manages it; null = it was made through the API. */
  readonly managedBy: string | null;
  /** Its secret's first and last characters, by which people recognise it; null = not noted, or unknown. */
  readonly secretHint: string | null;
  /** Null = the key has one secret. */
  readonly rotation: KeyRotation | null;
  /**
   * The last use that has reached the record store, which takes a minute at most. Milliseconds since 1970, a whole second; null = never
   * used.
   */
  readonly lastUsedAtMs: number | null;
}

/** A key that has two secrets for a time. Instants are milliseconds since 1970. */
export interface KeyRotation {
  readonly startedAtMs: number;
  /** From then on the previous secret is rejected. */
  readonly previousValidUntilMs: number;
  /** The last request with the previous secret; null = none since the rotation. */
  readonly previousLastUsedAtMs: number | null;
}

/** What a replica must know about a key to serve a request with it. Immutable; a change makes a new one. */
export interface KeySnapshot {
  readonly keyId: string;
  /** `<key version>.<plan version>`: differs whenever anything in the snapshot does. */
  readonly version: string;
  readonly enabled: boolean;
  /** As in `ConsumerKey`. */
  readonly expiresAtMs: number | null;
  /** The plan that applies (its own, else the default one); null = unlimited. */
  readonly plan: PlanSnapshot | null;
  /** From where the key may be used; null = anywhere. */
  readonly restrictions: KeyRestrictions | null;
  /** Differs from the version of every secret that the key had before. */
  readonly secretVersion: number;
  /** The secret that the key had before; it may have expired already. Null = none. */
  readonly previousSecret: PreviousSecret | null;
  /** What responses to other gateways and services say of the key. Read only where these can ask. */
  readonly owner?: KeyOwner;
}

/** Whose key it is, as in `ConsumerKey`. */
export type KeyOwner = Pick<ConsumerKey, 'name' | 'externalId' | 'tags' | 'metadata'>;

/** A secret that is valid until an instant. */
export interface PreviousSecret {
  /** As `secretVersion`. */
  readonly version: number;
  /** Milliseconds since 1970. */
  readonly validUntilMs: number;
}

/** Which of a key's secrets a request presents. */
export interface PresentedSecret {
  /** As `secretVersion`. */
  readonly version: number;
  /** When it ends because it is the key's previous one; null for the present one. Milliseconds since 1970. */
  readonly endsAtMs: number | null;
}

/** The plan of a snapshot. */
export interface PlanSnapshot {
  readonly id: string;
  /** Its limits, with the key's overrides. */
  readonly limits: RequestLimits;
}
