import { idTest } from '../../platform/id-maker.ts';
import type { OutboxEvent } from '../outbox-event.ts';
import type { StoredWebhook, Webhook } from '../webhook.ts';

/** One attempt to deliver. */
export interface Attempt {
  /** When it began. Milliseconds since 1970. */
  readonly atMs: number;
  /** Null if there was no response. */
  readonly responseStatus: number | null;
  readonly durationMs: number;
  /** Why there was no response; null if there was one. Never an address or a header. */
  readonly fault: DeliveryFault | null;
}

/** Why an attempt got no response. `unreadable_secret`: none of the encryption keys decrypts the secret of the webhook. */
export const DELIVERY_FAULTS = [
  'address_not_allowed',
  'name_not_found',
  'connection_failed',
  'timeout',
  'invalid_request',
  'unreadable_secret',
] as const;

export type DeliveryFault = (typeof DELIVERY_FAULTS)[number];

/** `cancelled`: the webhook does not subscribe to its events any more. */
export const DELIVERY_STATUSES = ['pending', 'succeeded', 'failed', 'cancelled'] as const;

export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** A request to a webhook, before its first attempt. */
export interface NewDelivery {
  /** `dlv_` and a ULID: the `webhook-id` of all attempts. */
  readonly id: string;
  readonly webhookId: string;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  readonly eventType: string;
  readonly eventIds: readonly string[];
  /** The tags that all its events have. */
  readonly tags: readonly string[];
  /** Of a batch: the tags of each of its events. Null: it is no batch, or a version that does not keep them has made it. */
  readonly eventTags: readonly (readonly string[])[] | null;
  readonly isBatch: boolean;
  /** One CloudEvent, or a list of them, as JSON. */
  readonly body: string;
}

/** A request to a webhook. */
export interface Delivery extends NewDelivery {
  readonly status: DeliveryStatus;
  /** Null if there is no further one. Milliseconds since 1970. */
  readonly nextAttemptAtMs: number | null;
  /** The number of attempts since the delivery was made or sent again. */
  readonly tries: number;
  /** The last attempts, oldest first. */
  readonly attempts: readonly Attempt[];
}

/** The most pending deliveries that are counted. */
export const MOST_COUNTED = 10_000;
/** The attempts of a delivery that are kept. */
export const KEPT_ATTEMPTS = 20;

/** What follows from an attempt. */
export interface AttemptResult {
  readonly attempt: Attempt;
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly status: DeliveryStatus;
  /** Null unless the status is `pending`. Milliseconds since 1970. */
  readonly nextAttemptAtMs: number | null;
}

/** Whether a text has the form of a delivery's id. */
export const isDeliveryId = idTest('dlv_');

/** What waits, and what is wrong. */
export interface Backlog {
  /** Deliveries that are to be made; `MOST_COUNTED` stands for that number or more. */
  readonly pending: number;
  /** When the oldest of them was made; null = there is none. Milliseconds since 1970. */
  readonly oldestAtMs: number | null;
  /** Webhooks that the gateway disabled. */
  readonly disabled: number;
}

/** Where deliveries wait. Every method rejects with `StoreUnavailable`. */
export interface DeliveryQueue {
  /**
   * Takes the lease, or keeps it, for `ttlMs`. Resolves with the time by the clock of the store, in milliseconds since 1970; undefined while
   * another holder has it.
   */
  hold(holder: string, ttlMs: number): Promise<number | undefined>;
  release(holder: string): Promise<void>;
  /** The webhooks that are enabled, or have not considered all that happened before they were disabled; at most `limit`, after one of them. */
  served(afterId: string | undefined, limit: number): Promise<readonly StoredWebhook[]>;
  /**
   * Makes deliveries of the events that a webhook has not considered yet, at most one page of events, with `make`, in one transaction: each
   * event becomes a delivery once. `make` gets the webhook as it is in that transaction. False if there were none, or another replica considers them.
   */
  fanOut(
    webhookId: string,
    make: (webhook: Webhook, events: readonly OutboxEvent[]) => readonly NewDelivery[],
  ): Promise<boolean>;
  /**
   * Pending deliveries of the webhook that are due, but for those in `except`, at most `limit`, the longest due first. None if it was
   * changed or deleted since this version of it was read, or the holder does not have the lease any more.
   */
  due(
    webhook: Pick<Webhook, 'id' | 'version'>,
    at: {
      readonly holder: string;
      readonly nowMs: number;
      readonly except: readonly string[];
      readonly limit: number;
    },
  ): Promise<readonly Delivery[]>;
  /** Notes an attempt, unless another replica has noted one meanwhile. */
  note(delivery: Delivery, result: AttemptResult): Promise<void>;
  /**
   * Cancels a delivery that its webhook in this version does not subscribe to. False if the webhook has another version by now, or the
   * delivery is not pending any more.
   */
  cancel(delivery: Delivery, webhookVersion: number, atMs: number): Promise<boolean>;
  /** Sets or clears since when a webhook is failing, and resolves with the instant. Milliseconds since 1970. */
  noteHealth(webhookId: string, hasFailed: boolean, atMs: number): Promise<number | null>;
  backlog(): Promise<Backlog>;
  /**
   * Removes deliveries that ended long ago, that have been due for long at a disabled webhook, or whose webhook was deleted, and events that
   * all webhooks have considered and no stream can ask for. Does some of each while `goesOn` says so, and resolves with whether there may be
   * more. Once `stopping` is aborted it begins nothing more. What can't be removed keeps nothing else from being removed: it rejects at the end.
   */
  trim(retention: DeliveryRetention, goesOn: () => boolean, stopping: AbortSignal): Promise<boolean>;
}

/** How long what is kept, in milliseconds, at `nowMs` and by the clock of the store. */
export interface DeliveryRetention {
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  readonly succeededKeptMs: number;
  /** Of deliveries that failed, and those to disabled webhooks. */
  readonly failedKeptMs: number;
  readonly eventsKeptMs: number;
}
