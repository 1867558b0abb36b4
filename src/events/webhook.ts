import { hash } from 'node:crypto';
import {
  type AuditedChange,
  type AuditTarget,
  changedFields,
  type RecordChange,
} from '../audit/audit-entry.ts';
import { idTest } from '../platform/id-maker.ts';
import { isoSecondsOrNull } from '../platform/timestamps.ts';
import type { Subscription } from './event-patterns.ts';

/** Why the gateway disabled a webhook: its endpoint responded with 410, or failed for days. */
export type DisabledReason = 'gone' | 'failing';

/** An endpoint that events are sent to. The record holds neither its secrets nor the values of its headers. */
export interface Webhook extends Subscription {
  /** `whk_` and a ULID; newer webhooks sort after older ones. */
  readonly id: string;
  readonly url: string;
  /** By which configurations and other systems find it again; null = none. */
  readonly externalId: string | null;
  readonly description: string;
  readonly enabled: boolean;
  /** Whether events of usage are sent together, up to 500 in one request. */
  readonly batch: boolean;
  /** The names of the headers that are added to each request. */
  readonly headerNames: readonly string[];
  /** `whsec_Ab3d…9xYz`. */
  readonly secretHint: string;
  /** Until when the secret before signs as well; null = there is only one. Milliseconds since 1970. */
  readonly previousValidUntilMs: number | null;
  /** Null unless the gateway disabled it. */
  readonly disabledReason: DisabledReason | null;
  /** Since when all attempts have failed; null = the last one succeeded. Milliseconds since 1970. */
  readonly failingSinceMs: number | null;
  /** The owner of the configuration that manages it; null = none. */
  readonly managedBy: string | null;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** Grows by one with every change by an administrator. */
  readonly version: number;
}

/** A webhook with its secrets, encrypted. */
export interface StoredWebhook {
  readonly webhook: Webhook;
  /** It can't be opened as that of another webhook. */
  readonly sealedSecret: Buffer;
  /** Null = there is none. */
  readonly previousSealedSecret: Buffer | null;
  /** Names and values as JSON; null = there are none. */
  readonly sealedHeaders: Buffer | null;
}

/** Whether a text has the form of a webhook's id. */
export const isWebhookId = idTest('whk_');

export function webhookTarget({ id, description, onlyTags }: Webhook): AuditTarget {
  return { type: 'webhook', id, name: description || null, tags: onlyTags };
}

/** A change of a webhook. */
export function auditedWebhook(...[before, after]: RecordChange<Webhook>): AuditedChange {
  const changes = changedFields(before && fieldsOf(before), after && fieldsOf(after));
  return { target: webhookTarget(after ?? before), changes };
}

/** The fields of a webhook in the audit log, by their names in the API. */
function fieldsOf(webhook: Webhook): Readonly<Record<string, unknown>> {
  const { url, events, onlyTags, description, enabled, batch, headerNames, disabledReason } = webhook;
  const { secretHint, previousValidUntilMs: untilMs, externalId, managedBy } = webhook;
  return {
    ...{ url: shownUrl(url), events, onlyTags, description, enabled, batch, headers: headerNames },
    ...{ secretHint, disabledReason, externalId, managedBy },
    previousValidUntil: isoSecondsOrNull(untilMs),
  };
}

/** The address without its path, which is a secret at many receivers. A digest shows that it changed. */
function shownUrl(url: string): string {
  const digest = hash('sha256', url).slice(0, 8);
  return `${new URL(url).origin}/… (${digest})`;
}
