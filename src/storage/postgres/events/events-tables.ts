import type { Generated } from 'kysely';

/** The table `events`. */
export interface EventsTable {
  readonly sequence: number;
  readonly id: string;
  readonly type: string;
  readonly subject: string;
  readonly at: Date;
  readonly tags: readonly string[];
  readonly data: string;
}

/** The table `webhooks`. */
export interface WebhooksTable {
  readonly id: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly only_tags: readonly string[];
  readonly description: string;
  readonly enabled: boolean;
  readonly batch: boolean;
  readonly header_names: readonly string[];
  readonly sealed_headers: Uint8Array | null;
  readonly sealed_secret: Uint8Array;
  readonly secret_hint: string;
  readonly previous_sealed_secret: Uint8Array | null;
  readonly previous_valid_until: Date | null;
  readonly disabled_reason: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly version: Generated<number>;
  readonly last_event: number;
  readonly heard_until: number | null;
  readonly failing_since: Date | null;
  readonly external_id: string | null;
  readonly managed_by: string | null;
  readonly managed_digest: Uint8Array | null;
}

/** The table `webhook_deliveries`. */
export interface WebhookDeliveriesTable {
  readonly id: string;
  readonly webhook_id: string;
  readonly created_at: Date;
  readonly event_type: string;
  readonly event_ids: readonly string[];
  readonly tags: readonly string[];
  readonly event_tags: string | null;
  readonly is_batch: boolean;
  readonly body: string;
  readonly status: string;
  readonly next_attempt_at: Date | null;
  readonly ended_at: Date | null;
  readonly tries: Generated<number>;
  readonly attempts: Generated<string>;
}

/** The table `key_expiry_progress`. */
export interface KeyExpiryProgressTable {
  readonly kind: string;
  readonly at: Date;
  readonly key_id: string;
}

/** The table `leases`. */
export interface LeasesTable {
  readonly name: string;
  readonly holder: string;
  readonly held_until: Date;
}
