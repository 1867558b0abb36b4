import type { Webhook } from '../events/webhook.ts';
import type { ConsumerKey } from '../keys/consumer-key.ts';
import type { NewPlan } from '../plans/plan-service.ts';

/** The fields of a key that a configuration sets. */
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

/** A key in a configuration. */
export interface DesiredKey extends ConfiguredKeyFields {
  /** Identifies the key; unique in the configuration. */
  readonly externalId: string;
  /** SHA-256 of the secret of a new key; null: the gateway generates one. Ignored for a key that exists already. */
  readonly secretDigest: Buffer | null;
}

/** The fields of a webhook that a configuration sets. Its headers are secrets, and stay as they are. */
export type ConfiguredWebhookFields = Pick<
  Webhook,
  'url' | 'events' | 'onlyTags' | 'description' | 'enabled' | 'batch'
>;

/** A webhook in a configuration. */
export interface DesiredWebhook extends ConfiguredWebhookFields {
  /** Identifies the webhook; unique in the configuration. */
  readonly externalId: string;
}

/** The plans, keys and webhooks in a configuration. Each is valid by itself, and ids are unique. */
export interface DesiredState {
  readonly plans: readonly NewPlan[];
  readonly keys: readonly DesiredKey[];
  readonly webhooks: readonly DesiredWebhook[];
}
