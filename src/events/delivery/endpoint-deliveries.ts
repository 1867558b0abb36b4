import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Random } from '../../platform/random.ts';
import { UnreadableSecret } from '../../secrets/secret-vault.ts';
import { TEST_TYPE } from '../event-types.ts';
import { openHeaders, openSecrets, type WebhookSeal } from '../sealed-webhook.ts';
import type { DisabledReason, StoredWebhook, Webhook } from '../webhook.ts';
import type { AttemptResult, Delivery, DeliveryQueue } from './delivery.ts';
import { heardPart } from './make-deliveries.ts';
import { nextAttemptAt, requestedPauseMs } from './retry-schedule.ts';
import type { DeliverySender, OutgoingRequest, SendResult } from './send-delivery.ts';
import { webhookSignature } from './signature.ts';

/** What `EndpointDeliveries` is built from. */
export interface EndpointOptions {
  readonly queue: DeliveryQueue;
  /** Who has the lease, without which no attempt begins. */
  readonly holder: string;
  readonly sender: Pick<DeliverySender, 'send'>;
  readonly vault: WebhookSeal;
  /** Its time is that of the store. */
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Disables the webhook, unless it has another version by now. */
  readonly disable: (reason: DisabledReason, webhookVersion: number) => Promise<void>;
  /** Called after each attempt. */
  readonly onAttempt: (hasFailed: boolean) => void;
  /** Ends the requests that are under way. */
  readonly stopping: AbortSignal;
}

/** Requests to one endpoint at a time. */
const AT_ONCE = 4;
/** The same while it fails: one request finds out whether it is back. */
const AT_ONCE_WHILE_FAILING = 1;
const GONE = 410;
/** Statuses whose `Retry-After` is about the endpoint, and not only about this request. */
const PAUSING: readonly (number | null)[] = [429, 503];
/** An endpoint that has failed for so long is disabled. Milliseconds. */
const LONGEST_FAILURE_MS = 5 * 86_400_000;
/** Longer than two pauses between attempts, by the schedule or by `Retry-After`. Milliseconds. */
const RECENT_MS = 3 * 86_400_000;
/** Failures nearer to each other may be those of one restart of the endpoint. Milliseconds. */
const APART_MS = 5 * 60_000;

/** A pause that an endpoint has requested of the webhook in this version. */
interface RequestedPause {
  readonly webhookVersion: number;
  /** By the monotonic clock. */
  readonly untilMs: number;
}

/** The requests to the endpoint of one webhook. */
export class EndpointDeliveries {
  readonly #options: EndpointOptions;
  readonly #underWay = new Map<string, Promise<void>>();
  /** The webhook as it was found last; undefined = it may not be served at present. */
  #stored: StoredWebhook | undefined;
  /** Settles when the deliveries that are due have been begun. */
  #filled: Promise<void> = Promise.resolve();
  #atOnce = AT_ONCE;
  #requestedPause: RequestedPause | undefined;
  /** The last two failed attempts of this process that began `APART_MS` apart, oldest first. Milliseconds since 1970. */
  #failedAtMs: readonly number[] = [];
  /** Whether its secret could not be decrypted, and the log says so. */
  #isUnreadable = false;

  constructor(options: EndpointOptions) {
    this.#options = options;
  }

  get isIdle(): boolean {
    return this.#underWay.size === 0;
  }

  /**
   * Starts the requests that are due, and goes on with the next ones as they end, until `pause`, a change of the webhook, or the loss of
   * the lease.
   */
  start(stored: StoredWebhook): Promise<void> {
    this.#stored = stored;
    // One after the other: at the same time both would begin the same deliveries.
    this.#filled = this.#filled.catch(() => {}).then(() => this.#fill());
    return this.#filled;
  }

  /** Starts no further requests. */
  pause(): void {
    this.#stored = undefined;
  }

  /** Resolves when no request is under way any more. */
  async settled(): Promise<void> {
    do {
      await Promise.all([...this.#underWay.values(), this.#filled.catch(() => {})]);
    } while (!this.isIdle);
  }

  async #fill(): Promise<void> {
    const stored = this.#stored;
    const room = this.#atOnce - this.#underWay.size;
    if (stored === undefined || room <= 0 || this.#options.stopping.aborted) return;
    const { queue, clock, holder } = this.#options;
    // Their bodies are in memory already. Those that end meanwhile would be found as they were before.
    const except = [...this.#underWay.keys()];
    const due = await queue.due(stored.webhook, { holder, nowMs: clock.nowMs(), except, limit: room });
    // It may have been paused meanwhile, and another replica may have the lease by now.
    if (this.#stored === undefined) return;
    const isPaused = this.#isPaused(stored.webhook);
    const ready = due.filter((each) => !isPaused || isByHand(each));
    for (const delivery of ready) this.#begin(stored, delivery);
  }

  #begin(stored: StoredWebhook, delivery: Delivery): void {
    const { log } = this.#options;
    const underWay = this.#attempt(stored, delivery)
      .then(() => {
        this.#underWay.delete(delivery.id);
        return this.#stored && this.start(this.#stored);
      })
      .catch((err: unknown) => {
        // The delivery stays due: the next run attempts it again.
        this.#underWay.delete(delivery.id);
        log.warn({ err, webhookId: stored.webhook.id, deliveryId: delivery.id }, 'a delivery was not noted');
      });
    this.#underWay.set(delivery.id, underWay);
  }

  async #attempt(stored: StoredWebhook, delivery: Delivery): Promise<void> {
    const { queue, clock, stopping } = this.#options;
    const { webhook } = stored;
    const atMs = clock.nowMs();
    const heard = heardPart(webhook, delivery);
    if (heard === undefined) {
      // It may have become wider as well: the next run starts with the webhook as it is then.
      if (!(await queue.cancel(delivery, webhook.version, atMs))) this.pause();
      return;
    }
    const pauseBefore = this.#requestedPause;
    const outcome = await this.#send(stored, heard, atMs);
    if (stopping.aborted && outcome.responseStatus === null) return;
    const { responseStatus, durationMs, fault } = outcome;
    const hasFailed = responseStatus === null || responseStatus < 200 || responseStatus > 299;
    this.#atOnce = hasFailed ? AT_ONCE_WHILE_FAILING : AT_ONCE;
    // A success of an attempt from before the pause was requested says nothing about it.
    if (!hasFailed && this.#requestedPause === pauseBefore) this.#requestedPause = undefined;
    this.#notePause(webhook, outcome);
    this.#options.onAttempt(hasFailed);
    const attempt = { atMs, responseStatus, durationMs, fault };
    await queue.note(delivery, { attempt, atMs, ...this.#following(delivery, outcome, hasFailed) });
    const failingSinceMs = await queue.noteHealth(webhook.id, hasFailed, atMs);
    const isFailing = failingSinceMs !== null && atMs - failingSinceMs >= LONGEST_FAILURE_MS;
    if (responseStatus === GONE) await this.#disable('gone', webhook);
    else if (isFailing && this.#isThirdFailure(delivery, atMs)) await this.#disable('failing', webhook);
    if (hasFailed) this.#noteFailure(atMs);
  }

  /**
   * Whether the attempt that failed at this instant is at least the third of its endpoint within `RECENT_MS`. One after days without an
   * attempt, for which nothing happened or the gateway was off, does not show that the endpoint failed all the time. The attempts of the
   * delivery may be from before this process; all are from after the last success, which is longer ago than `RECENT_MS`.
   */
  #isThirdFailure({ attempts }: Delivery, atMs: number): boolean {
    const failedAtMs = new Set([...this.#failedAtMs, ...attempts.map((each) => each.atMs)]);
    const recent = [...failedAtMs].filter((each) => atMs - each < RECENT_MS);
    return recent.length >= 2 && recent.some((each) => atMs - each >= APART_MS);
  }

  #noteFailure(atMs: number): void {
    const last = this.#failedAtMs.at(-1);
    if (last === undefined || atMs - last >= APART_MS)
      this.#failedAtMs = [...this.#failedAtMs, atMs].slice(-2);
  }

  #notePause({ version: webhookVersion }: Webhook, { responseStatus, retryAfter }: SendResult): void {
    const { clock } = this.#options;
    const pauseMs = PAUSING.includes(responseStatus) ? requestedPauseMs(retryAfter, clock.nowMs()) : 0;
    if (pauseMs > 0) this.#requestedPause = { webhookVersion, untilMs: clock.monotonicMs() + pauseMs };
  }

  /** Another version of the webhook may have another address, or show that its endpoint was mended. */
  #isPaused({ version }: Webhook): boolean {
    const pause = this.#requestedPause;
    return pause?.webhookVersion === version && this.#options.clock.monotonicMs() < pause.untilMs;
  }

  async #disable(reason: DisabledReason, { version }: Webhook): Promise<void> {
    await this.#options.disable(reason, version);
    // The next run starts with the webhook as it is then: disabled, or changed by an administrator meanwhile.
    this.pause();
  }

  /** Never rejects because of the endpoint, or of a secret that can't be decrypted. */
  async #send(
    stored: StoredWebhook,
    delivery: Delivery,
    atMs: number,
  ): Promise<SendResult & { readonly durationMs: number }> {
    const { sender, stopping, log } = this.#options;
    try {
      const request = this.#requestOf(stored, delivery, atMs);
      this.#isUnreadable = false;
      return await sender.send(request, stopping);
    } catch (err) {
      if (!(err instanceof UnreadableSecret)) throw err;
      if (!this.#isUnreadable)
        log.error({ err, webhookId: stored.webhook.id }, 'the secret of a webhook can not be decrypted');
      this.#isUnreadable = true;
      return { responseStatus: null, fault: 'unreadable_secret', retryAfter: null, durationMs: 0 };
    }
  }

  #requestOf(stored: StoredWebhook, { id, body, isBatch }: Delivery, atMs: number): OutgoingRequest {
    const { vault } = this.#options;
    const timestamp = Math.floor(atMs / 1000);
    const secrets = openSecrets(stored, atMs, vault);
    return {
      url: new URL(stored.webhook.url),
      headers: {
        ...openHeaders(stored, vault),
        'content-type': `application/cloudevents${isBatch ? '-batch' : ''}+json`,
        'user-agent': 'tollgate',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': webhookSignature(secrets, { webhookId: id, timestamp, body }),
      },
      body,
    };
  }

  #following(
    { tries }: Delivery,
    { retryAfter }: SendResult,
    hasFailed: boolean,
  ): Pick<AttemptResult, 'status' | 'nextAttemptAtMs'> {
    const { clock, random } = this.#options;
    if (!hasFailed) return { status: 'succeeded', nextAttemptAtMs: null };
    const nextMs = nextAttemptAt({ tries: tries + 1, retryAfter, nowMs: clock.nowMs() }, random);
    return nextMs === undefined
      ? { status: 'failed', nextAttemptAtMs: null }
      : { status: 'pending', nextAttemptAtMs: nextMs };
  }
}

/** Whether an administrator has asked for it: a test, or one that is sent again. */
function isByHand({ eventType, tries, attempts }: Delivery): boolean {
  return tries === 0 && (eventType === TEST_TYPE || attempts.length > 0);
}
