import type { ConsumerKey } from '../keys/consumer-key.ts';
import type { NewPlan } from '../plans/plan-service.ts';

/** What a configuration decides of a key. */
export type ConfiguredKeyFields = Pick<
  ConsumerKey,
  | 'name'
  | 'enabled'
  | 'expiresAtMs'
  | 'planId'
  | 'tags'
  | 'metadata'
  | 'overrides'
  | 'allowedIps'
  | 'allowedOrigins'
  | 'selfService'
>;

/** A key as a configuration wants it. */
export interface DesiredKey extends ConfiguredKeyFields {
  /** By which it is found again; unique in the configuration. */
  readonly externalId: string;
  /** SHA-256 of the secret that it is made with; null: the gateway makes one. Says nothing of a key that there is already. */
  readonly secretDigest: Buffer | null;
}

/** What a configuration wants there to be. Each part is well-formed, and no two have the same id. */
export interface DesiredState {
  readonly plans: readonly NewPlan[];
  readonly keys: readonly DesiredKey[];
}

/** The form of the owner of a configuration. */
export const OWNER = /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,63}$/;

/** Most plans of a configuration. */
export const MAX_CONFIGURED_PLANS = 1000;
/** Most keys of a configuration. */
export const MAX_CONFIGURED_KEYS = 10_000;
