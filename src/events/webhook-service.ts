import type { ChangeContext } from '../audit/change-context.ts';
import {
  DeliveryNotFound,
  InvalidBody,
  MissingScope,
  requireNoFaults,
  TollgateError,
  WebhookNotFound,
} from '../errors.ts';
import { missingScope, type Principal } from '../permissions/principal.ts';
import { isVisible, withTagsOf } from '../permissions/visible-records.ts';
import type { Random } from '../platform/random.ts';
import { wholeSecondUp } from '../platform/timestamps.ts';
import type { AddressPolicy } from './delivery/address-policy.ts';
import { type Delivery, type DeliveryStatus, isDeliveryId } from './delivery/delivery.ts';
import { deliveryOf, heardPart } from './delivery/make-deliveries.ts';
import { createWebhookSecret, webhookSecretHint } from './delivery/signature.ts';
import { patternFault, scopesOf, typesHeardBy } from './event-patterns.ts';
import { TEST_TYPE } from './event-types.ts';
import { cloudEventText } from './outbox-event.ts';
import { sealHeaders, type WebhookHeaders, type WebhookSeal } from './sealed-webhook.ts';
import { isWebhookId, type StoredWebhook, type Webhook } from './webhook.ts';
import type { DeliveryFilter, WebhookEdit, WebhookRepository } from './webhook-repository.ts';

/** What `WebhookService` is built from. */
export interface WebhookServiceOptions {
  readonly repository: WebhookRepository;
  readonly policy: Pick<AddressPolicy, 'check'>;
  readonly vault: WebhookSeal;
  /** `source` of all events. */
  readonly source: string;
  readonly random: Random;
  readonly makeId: () => string;
  readonly makeDeliveryId: () => string;
  /** Is called when there is something to deliver. */
  readonly wake: () => void;
}

/** The fields of a webhook that an administrator sets. */
export interface WebhookFields
  extends Pick<Webhook, 'url' | 'events' | 'onlyTags' | 'externalId' | 'description' | 'enabled' | 'batch'> {
  readonly headers: WebhookHeaders;
}

/** A webhook and its new secret, which is never shown again. */
export interface RevealedWebhook {
  readonly webhook: Webhook;
  readonly secret: string;
}

/** A new webhook that is not stored yet. */
export interface PreparedWebhook {
  readonly stored: StoredWebhook;
  readonly secret: string;
}

/** A part of the deliveries of a webhook, newest first. */
interface DeliveriesPage {
  readonly limit: number;
  readonly afterId: string | undefined;
  readonly status: DeliveryStatus | undefined;
}

/** The bodies of deliveries on one page: a batch has hundreds of kilobytes. */
const PAGE_BYTES = 2_000_000;

/**
 * Creates, shows, changes and deletes webhooks. Principals neither make nor change a webhook that hears more than they may read, and see
 * only webhooks, and deliveries, that are limited to their tags. A webhook outlives the token that made it.
 */
export class WebhookService {
  readonly #options: WebhookServiceOptions;

  constructor(options: WebhookServiceOptions) {
    this.#options = options;
  }

  /** For a `url` that `checkUrl` has accepted. Throws `InvalidBody` or `MissingScope`. */
  async create(fields: WebhookFields, principal: Principal, change: ChangeContext): Promise<RevealedWebhook> {
    requireHeard(fields.events, principal);
    const limited = { ...fields, onlyTags: withTagsOf(fields.onlyTags, principal) };
    const { stored, secret } = this.prepare(limited, null, change);
    await this.#options.repository.insert(stored, change);
    this.wake();
    return { webhook: stored.webhook, secret };
  }

  /** Waits for DNS: call it outside of transactions. Throws `WebhookUrlNotAllowed`. */
  checkUrl(url: string): Promise<void> {
    return this.#options.policy.check(url);
  }

  /** Is called when there may be something to deliver. */
  wake(): void {
    this.#options.wake();
  }

  /** A new webhook that is not stored yet, and its secret. */
  prepare(fields: WebhookFields, managedBy: string | null, change: ChangeContext): PreparedWebhook {
    const { vault, random } = this.#options;
    const id = this.#options.makeId();
    const secret = createWebhookSecret(random);
    const { headers, ...rest } = fields;
    const webhook: Webhook = {
      ...rest,
      ...{ id, managedBy },
      headerNames: Object.keys(headers),
      secretHint: webhookSecretHint(secret),
      previousValidUntilMs: null,
      disabledReason: null,
      failingSinceMs: null,
      createdAtMs: change.atMs,
      updatedAtMs: change.atMs,
      version: 1,
    };
    const sealedSecret = vault.seal(id, secret);
    const sealedHeaders = sealHeaders(id, headers, vault);
    return { stored: { webhook, sealedSecret, previousSealedSecret: null, sealedHeaders }, secret };
  }

  /** Newest first. */
  list(
    page: Omit<Parameters<WebhookRepository['list']>[0], 'onlyTags'>,
    { onlyTags }: Principal,
  ): Promise<readonly Webhook[]> {
    return this.#options.repository.list({ onlyTags, ...page });
  }

  count({ onlyTags }: Principal): Promise<number> {
    return this.#options.repository.count(onlyTags);
  }

  /** Throws `WebhookNotFound`. */
  async get(webhookId: string, { onlyTags }: Principal): Promise<Webhook> {
    const webhook = isWebhookId(webhookId) ? await this.#options.repository.find(webhookId) : undefined;
    if (webhook === undefined || !isVisible(webhook.onlyTags, onlyTags)) throw new WebhookNotFound();
    return webhook;
  }

  /** Throws `WebhookNotFound`, `InvalidBody`, `MissingScope`, `WebhookUrlNotAllowed` or `VersionMismatch`. */
  async update(
    webhookId: string,
    { changes, principal }: { readonly changes: Partial<WebhookFields>; readonly principal: Principal },
    change: ChangeContext,
  ): Promise<Webhook> {
    if (changes.url !== undefined) await this.checkUrl(changes.url);
    const { headers, ...rest } = changes;
    const edit = (present: StoredWebhook): StoredWebhook => {
      const before = present.webhook;
      const wanted = { ...before, ...rest };
      requireHeard(before.events, principal);
      requireHeard(wanted.events, principal);
      if (headers === undefined) requireSameReceiver(before, wanted.url);
      const webhook: Webhook = {
        ...wanted,
        onlyTags: withTagsOf(wanted.onlyTags, principal),
        ...(headers && { headerNames: Object.keys(headers) }),
        ...(changes.enabled !== undefined && { disabledReason: null }),
        ...(changes.enabled && { failingSinceMs: null }),
        ...(wanted.url !== before.url && { failingSinceMs: null }),
      };
      const sealed = headers && { sealedHeaders: sealHeaders(webhookId, headers, this.#options.vault) };
      return { ...present, webhook, ...sealed };
    };
    const webhook = await this.#edit(webhookId, { action: 'webhook.update', edit }, change);
    this.#options.wake();
    return webhook;
  }

  /** Gives the webhook a new secret. The present one signs as well for the grace period. Throws like `update`, or `rotation_in_progress`. */
  async rotate(
    webhookId: string,
    { graceMs, principal }: { readonly graceMs: number; readonly principal: Principal },
    change: ChangeContext,
  ): Promise<RevealedWebhook> {
    const { vault, random } = this.#options;
    const secret = createWebhookSecret(random);
    const edit = (present: StoredWebhook): StoredWebhook => {
      const { webhook } = present;
      requireHeard(webhook.events, principal);
      const { previousValidUntilMs: untilMs } = webhook;
      if (graceMs > 0 && untilMs !== null && untilMs > change.atMs)
        throw new TollgateError(
          'rotation_in_progress',
          'The webhook has two secrets already. Wait until the previous one has ended, or rotate with "graceSeconds" 0, which ends both.',
        );
      const previousValidUntilMs = graceMs === 0 ? null : wholeSecondUp(change.atMs + graceMs);
      return {
        ...present,
        webhook: { ...webhook, secretHint: webhookSecretHint(secret), previousValidUntilMs },
        sealedSecret: vault.seal(webhookId, secret),
        previousSealedSecret: graceMs === 0 ? null : present.sealedSecret,
      };
    };
    return { webhook: await this.#edit(webhookId, { action: 'webhook.rotate', edit }, change), secret };
  }

  /** Throws `WebhookNotFound` or `VersionMismatch`. */
  async remove(webhookId: string, change: ChangeContext): Promise<void> {
    const existed = isWebhookId(webhookId) && (await this.#options.repository.delete(webhookId, change));
    if (!existed) throw new WebhookNotFound();
  }

  /** Queues an event that only this webhook gets, and resolves with the id of its delivery. Throws `WebhookNotFound` or `MissingScope`. */
  async test(webhookId: string, principal: Principal, change: ChangeContext): Promise<string> {
    const webhook = await this.get(webhookId, principal);
    requireHeard(webhook.events, principal);
    requireEnabled(webhook);
    const { repository, source, makeDeliveryId } = this.#options;
    const id = makeDeliveryId();
    const { atMs } = change;
    const data = JSON.stringify({ message: 'The webhook works.' });
    const event = { id, type: TEST_TYPE, subject: webhookId, atMs, tags: webhook.onlyTags, data };
    const written = [{ event, text: cloudEventText(event, source) }];
    const delivery = deliveryOf(webhook, written, { makeId: () => id, nowMs: atMs });
    if (!(await repository.addDelivery(delivery, webhook, change))) throw new WebhookNotFound();
    this.#options.wake();
    return id;
  }

  /** The deliveries that the principal may read, newest first. Throws `WebhookNotFound`. */
  async deliveries(
    webhookId: string,
    { limit, afterId, status }: DeliveriesPage,
    principal: Principal,
  ): Promise<{ readonly deliveries: readonly Delivery[]; readonly nextAfterId: string | undefined }> {
    await this.get(webhookId, principal);
    const { deliveries, hasMore } = await this.#options.repository.deliveries(webhookId, {
      ...deliveriesReadBy(principal, status),
      ...{ limit, maxBytes: PAGE_BYTES },
      ...(afterId !== undefined && { beforeId: afterId }),
    });
    return { deliveries, nextAfterId: hasMore ? deliveries.at(-1)?.id : undefined };
  }

  /** How many of them there are. Throws `WebhookNotFound`. */
  async countDeliveries(
    webhookId: string,
    status: DeliveryStatus | undefined,
    principal: Principal,
  ): Promise<number> {
    await this.get(webhookId, principal);
    return this.#options.repository.countDeliveries(webhookId, deliveriesReadBy(principal, status));
  }

  /** Sends a delivery again, under its id. Throws `WebhookNotFound`, `DeliveryNotFound` or `MissingScope`. */
  async resend(
    { webhookId, deliveryId }: { readonly webhookId: string; readonly deliveryId: string },
    principal: Principal,
    change: ChangeContext,
  ): Promise<void> {
    const webhook = await this.get(webhookId, principal);
    requireHeard(webhook.events, principal);
    const { repository, wake } = this.#options;
    const delivery = isDeliveryId(deliveryId)
      ? await repository.findDelivery(webhookId, deliveryId)
      : undefined;
    if (
      delivery === undefined ||
      !isVisible(delivery.tags, principal.onlyTags) ||
      !typesHeardBy(principal).some((type) => type === delivery.eventType)
    )
      throw new DeliveryNotFound();
    requireEnabled(webhook);
    if (heardPart(webhook, delivery) === undefined)
      throw new TollgateError(
        'not_subscribed',
        'The webhook does not subscribe to this event any more: the delivery would only be cancelled.',
      );
    if (!(await repository.resend(delivery, webhook, change))) throw new WebhookNotFound();
    wake();
  }

  async #edit(webhookId: string, edit: WebhookEdit, change: ChangeContext): Promise<Webhook> {
    const webhook = isWebhookId(webhookId)
      ? await this.#options.repository.update(webhookId, edit, change)
      : undefined;
    if (webhook === undefined) throw new WebhookNotFound();
    return webhook;
  }
}

function deliveriesReadBy(principal: Principal, status: DeliveryStatus | undefined): DeliveryFilter {
  const { onlyTags } = principal;
  return { types: typesHeardBy(principal), onlyTags, ...(status !== undefined && { status }) };
}

/** Throws `InvalidBody` for unknown types, and `MissingScope` if the principal may not hear all of them. */
function requireHeard(events: readonly string[], principal: Principal): void {
  requireNoFaults(
    events.flatMap((pattern, index) => {
      const message = patternFault(pattern);
      return message === undefined ? [] : [{ field: `events[${index}]`, message }];
    }),
  );
  const missing = missingScope(principal, scopesOf(events));
  if (missing !== undefined) throw new MissingScope(missing);
}

/** Headers often hold a credential of the receiver: with another address they must be written again. Throws `InvalidBody`. */
function requireSameReceiver({ url, headerNames }: Webhook, wantedUrl: string): void {
  if (headerNames.length === 0 || new URL(url).origin === new URL(wantedUrl).origin) return;
  throw new InvalidBody([
    { field: 'headers', message: 'must be given again with a url of another scheme, host or port' },
  ]);
}

function requireEnabled({ enabled }: Webhook): void {
  if (!enabled)
    throw new TollgateError(
      'webhook_disabled',
      'The webhook is disabled. Enable it first: {"enabled": true}.',
    );
}
