import type { AuditAction } from '../audit/audit-entry.ts';
import type { ChangeContext } from '../audit/change-context.ts';
import type { Delivery, NewDelivery } from './delivery/delivery.ts';
import type { StoredWebhook, Webhook } from './webhook.ts';

/** A change to an existing webhook. */
export interface WebhookEdit {
  readonly action: Extract<AuditAction, 'webhook.update' | 'webhook.rotate' | 'webhook.disable'>;
  /** Returns the changed webhook; `updatedAtMs` and `version` are set afterwards. If it throws, nothing is changed. */
  readonly edit: (present: StoredWebhook) => StoredWebhook;
}

/** Selects deliveries of a webhook. */
export interface DeliveryFilter {
  /** Only deliveries of these types. */
  readonly types: readonly string[];
  /** Only deliveries whose events all have these tags. */
  readonly onlyTags: readonly string[];
  readonly status?: Delivery['status'];
}

/** Selects the deliveries of a page, newest first. */
export interface DeliveryPage extends DeliveryFilter {
  readonly limit: number;
  /** Of all bodies on the page. */
  readonly maxBytes: number;
  /** Only deliveries older than this one. */
  readonly beforeId?: string;
}

export interface DeliveryList {
  readonly deliveries: readonly Delivery[];
  /** Whether there are older ones. */
  readonly hasMore: boolean;
}

/**
 * Stores webhooks. For a change that is limited to tags, only webhooks that are limited to these tags as well exist. Each change and its
 * entry in the audit log are written in one transaction. Every method rejects with `StoreUnavailable` if the store does not respond.
 */
export interface WebhookRepository {
  /** From now on the webhook hears events, the one about its own creation included. */
  insert(stored: StoredWebhook, change: ChangeContext): Promise<void>;
  /** Newest first, at most `limit`, only those limited to all of the tags. */
  list(page: {
    readonly onlyTags: readonly string[];
    readonly limit: number;
    readonly beforeId?: string;
  }): Promise<readonly Webhook[]>;
  count(onlyTags: readonly string[]): Promise<number>;
  find(webhookId: string): Promise<Webhook | undefined>;
  /** Undefined if there is no such webhook. Rejects with `VersionMismatch` if its state is not the expected one. */
  update(webhookId: string, edit: WebhookEdit, change: ChangeContext): Promise<Webhook | undefined>;
  /** Deletes it with its deliveries. False if there was no such webhook. Rejects with `VersionMismatch` like `update`. */
  delete(webhookId: string, change: ChangeContext): Promise<boolean>;
  /** A page of deliveries; it is shorter where their bodies are long, but has at least one if there is one. */
  deliveries(webhookId: string, page: DeliveryPage): Promise<DeliveryList>;
  countDeliveries(webhookId: string, filter: DeliveryFilter): Promise<number>;
  findDelivery(webhookId: string, deliveryId: string): Promise<Delivery | undefined>;
  /** Stores a delivery that an administrator asked for, due before all others of its webhook. False if there is no such webhook. */
  addDelivery(delivery: NewDelivery, webhook: Webhook, change: ChangeContext): Promise<boolean>;
  /**
   * Makes a delivery due before all others of its webhook, under its id, with all its attempts, unless it is due already. False if there is no
   * such webhook.
   */
  resend(delivery: Delivery, webhook: Webhook, change: ChangeContext): Promise<boolean>;
}
