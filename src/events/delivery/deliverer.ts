import type { Actor, ChangeContext } from '../../audit/change-context.ts';
import { StoreBusy, StoreUnavailable } from '../../errors.ts';
import type { Clock } from '../../platform/clock.ts';
import { idMaker } from '../../platform/id-maker.ts';
import { LAST_QUERY_BY_MS } from '../../platform/process/shutdown-order.ts';
import type { DisabledReason, StoredWebhook } from '../webhook.ts';
import type { WebhookRepository } from '../webhook-repository.ts';
import type { Backlog } from './delivery.ts';
import { EndpointDeliveries, type EndpointOptions } from './endpoint-deliveries.ts';
import { makeDeliveries } from './make-deliveries.ts';

/** What `Deliverer` is built from. */
export interface DelivererOptions
  extends Omit<EndpointOptions, 'holder' | 'clock' | 'disable' | 'stopping' | 'onAttempt'> {
  readonly clock: Clock;
  readonly repository: Pick<WebhookRepository, 'update'>;
  /** `source` of all events. */
  readonly source: string;
}

/** How long a replica that died keeps the others from delivering. Milliseconds. */
const LEASE_MS = 15_000;
/** The age at which the lease is prolonged within a run, which may take longer than the lease lasts. Milliseconds. */
const PROLONGED_AFTER_MS = LEASE_MS / 3;
const WEBHOOKS_AT_ONCE = 100;
/** Pages of events for one webhook before the next webhook has its turn. */
const PAGES_IN_A_TURN = 10;
/** How long what is not needed is removed before the lease is prolonged. Milliseconds. */
const TRIM_TURN_MS = 5000;
const DAY_MS = 86_400_000;
const SUCCEEDED_KEPT_DAYS = 7;
const FAILED_KEPT_DAYS = 30;
/** A stream can be continued from events of this age. */
const EVENTS_KEPT_DAYS = 7;

/** What a run found; `behind`: there may be events that a webhook has not considered. */
export type RunResult = 'no webhooks' | 'another replica delivers' | 'delivering' | 'behind';

/**
 * Delivers events to webhooks. Of all replicas, the one that holds the lease does it. Each webhook has separate requests under way: a
 * slow endpoint delays no other. Should two replicas deliver at once because one was paused, an endpoint may get a request twice, under
 * the same `webhook-id`. Memory is bounded by the number of webhooks, not by that of events.
 */
export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #holder: string;
  readonly #makeId: () => string;
  readonly #endpoints = new Map<string, EndpointDeliveries>();
  readonly #stopping = new AbortController();
  #stoppingSinceMs: number | undefined;
  /** The webhooks that could not be served in the last run, of which the log says so. */
  readonly #faulty = new Set<string>();
  /** Attempts of this process, by how they ended. */
  readonly attempts = { succeeded: 0, failed: 0 };
  /** Whether it may have the lease. */
  #mayHold = false;
  #heldAtMs = Number.NEGATIVE_INFINITY;
  /** By how much the clock of the store is ahead of the monotonic one, as of the last time that it had the lease. Milliseconds. */
  #storeAheadMs: number;
  /** All times of deliveries are those of the store: the next holder of the lease, whose clock may differ, compares them with its own. */
  readonly #storeClock: Clock;

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#holder = options.random.bytes(12).toString('base64url');
    const { clock } = options;
    this.#storeAheadMs = clock.nowMs() - clock.monotonicMs();
    this.#storeClock = {
      nowMs: () => Math.floor(clock.monotonicMs() + this.#storeAheadMs),
      monotonicMs: () => clock.monotonicMs(),
    };
    this.#makeId = idMaker('dlv_', this.#storeClock, options.random);
  }

  /** Considers the new events and starts the requests that are due, without waiting for these. Rejects with `StoreUnavailable`. */
  async run(): Promise<RunResult> {
    const { queue } = this.#options;
    const found = new Set<string>();
    let result: RunResult = 'no webhooks';
    let page = await queue.served(undefined, WEBHOOKS_AT_ONCE);
    if (page.length > 0 && !(await this.#hold())) return this.#standBy();
    while (page.length > 0) {
      for (const stored of page) {
        if (stored.webhook.enabled) found.add(stored.webhook.id);
        if (await this.#tryToServe(stored)) result = 'behind';
        else if (result === 'no webhooks') result = 'delivering';
        if (!(await this.#keepHold())) return this.#standBy();
      }
      page = await queue.served(page.at(-1)?.webhook.id, WEBHOOKS_AT_ONCE);
    }
    this.#pauseAllBut(found);
    // The next webhook may be made at another replica, which would wait for the end of the lease.
    if (result === 'no webhooks' && this.#endpoints.size === 0) await this.#release();
    return result;
  }

  /** `oldestAtMs` is by the clock of this replica, with which its metrics compare it. */
  async backlog(): Promise<Backlog> {
    const { queue, clock } = this.#options;
    const { oldestAtMs, ...backlog } = await queue.backlog();
    const aheadMs = clock.nowMs() - this.#storeClock.nowMs();
    return { ...backlog, oldestAtMs: oldestAtMs === null ? null : oldestAtMs + aheadMs };
  }

  /** Removes what is not needed any more, for some seconds. Resolves with whether there may be more. */
  trim(): Promise<boolean> {
    const { queue, clock } = this.#options;
    const startedMs = clock.monotonicMs();
    const retention = {
      nowMs: clock.nowMs(),
      succeededKeptMs: SUCCEEDED_KEPT_DAYS * DAY_MS,
      failedKeptMs: FAILED_KEPT_DAYS * DAY_MS,
      eventsKeptMs: EVENTS_KEPT_DAYS * DAY_MS,
    };
    const { signal } = this.#stopping;
    const goesOn = () => !signal.aborted && clock.monotonicMs() - startedMs < TRIM_TURN_MS;
    return queue.trim(retention, goesOn, signal);
  }

  /** Resolves when no request is under way any more. */
  async settled(): Promise<void> {
    await Promise.all([...this.#endpoints.values()].map((endpoint) => endpoint.settled()));
  }

  /** Ends the requests that are under way, which stay due, and a run after its present page. */
  beginStop(): void {
    this.#stoppingSinceMs ??= this.#options.clock.monotonicMs();
    this.#stopping.abort();
  }

  /** Like `beginStop`, and gives the lease away. Call it when no run is under way any more: it would take the lease again. */
  async stop(): Promise<void> {
    this.beginStop();
    await this.settled();
    const tookMs = this.#options.clock.monotonicMs() - (this.#stoppingSinceMs ?? 0);
    // Else the lease ends by itself.
    if (tookMs > LAST_QUERY_BY_MS) return;
    try {
      await this.#release();
    } catch (error) {
      // The lease ends by itself.
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  async #release(): Promise<void> {
    if (!this.#mayHold) return;
    await this.#options.queue.release(this.#holder);
    this.#mayHold = false;
  }

  async #hold(): Promise<boolean> {
    if (this.#stopping.signal.aborted) return false;
    this.#mayHold = true;
    const { queue, clock } = this.#options;
    const atMs = clock.monotonicMs();
    const storeNowMs = await queue.hold(this.#holder, LEASE_MS);
    this.#heldAtMs = storeNowMs === undefined ? Number.NEGATIVE_INFINITY : atMs;
    if (storeNowMs === undefined) return false;
    // Compared after the call, so that no delivery gets a time that is still to come for the store.
    this.#storeAheadMs = storeNowMs - clock.monotonicMs();
    return true;
  }

  /** Like `#hold`, but asks the store only if the lease is not new any more. */
  async #keepHold(): Promise<boolean> {
    if (this.#stopping.signal.aborted) return false;
    const ageMs = this.#options.clock.monotonicMs() - this.#heldAtMs;
    return ageMs < PROLONGED_AFTER_MS || this.#hold();
  }

  #standBy(): RunResult {
    this.#pauseAllBut(new Set());
    return 'another replica delivers';
  }

  #pauseAllBut(found: ReadonlySet<string>): void {
    for (const [id, endpoint] of this.#endpoints) {
      if (found.has(id)) continue;
      endpoint.pause();
      if (endpoint.isIdle) this.#endpoints.delete(id);
      this.#faulty.delete(id);
    }
  }

  /**
   * Like `#serve`. A fault of one webhook, or a statement for it that takes too long, ends the run for no other; without the store there is
   * nothing to do for any.
   */
  async #tryToServe(stored: StoredWebhook): Promise<boolean> {
    const { id } = stored.webhook;
    try {
      const isBehind = await this.#serve(stored);
      this.#faulty.delete(id);
      return isBehind;
    } catch (err) {
      if (err instanceof StoreUnavailable && !(err instanceof StoreBusy)) throw err;
      if (!this.#faulty.has(id))
        this.#options.log.error({ err, webhookId: id }, 'a webhook can not be served; it is tried again');
      this.#faulty.add(id);
      return false;
    }
  }

  /** Resolves with whether there may be more events to consider. */
  async #serve(stored: StoredWebhook): Promise<boolean> {
    const { queue, source } = this.#options;
    const { webhook } = stored;
    let pages = 0;
    for (; pages < PAGES_IN_A_TURN && (await this.#keepHold()); pages += 1) {
      const making = { makeId: this.#makeId, source, nowMs: this.#storeClock.nowMs() };
      const isMade = await queue.fanOut(webhook.id, (present, events) =>
        makeDeliveries(present, events, making),
      );
      if (!isMade) break;
    }
    if (webhook.enabled) await this.#endpointOf(stored).start(stored);
    return pages === PAGES_IN_A_TURN;
  }

  #endpointOf({ webhook }: StoredWebhook): EndpointDeliveries {
    const present = this.#endpoints.get(webhook.id);
    if (present !== undefined) return present;
    const disable = (reason: DisabledReason, version: number) => this.#disable(webhook.id, reason, version);
    const onAttempt = (hasFailed: boolean) => {
      this.attempts[hasFailed ? 'failed' : 'succeeded'] += 1;
    };
    const { signal: stopping } = this.#stopping;
    const endpoint = new EndpointDeliveries({
      ...this.#options,
      holder: this.#holder,
      clock: this.#storeClock,
      disable,
      onAttempt,
      stopping,
    });
    this.#endpoints.set(webhook.id, endpoint);
    return endpoint;
  }

  async #disable(webhookId: string, disabledReason: DisabledReason, version: number): Promise<void> {
    const { repository, clock, log } = this.#options;
    // The request may have been made before an administrator changed the webhook.
    const edit = (present: StoredWebhook): StoredWebhook =>
      present.webhook.version === version
        ? { ...present, webhook: { ...present.webhook, enabled: false, disabledReason } }
        : present;
    const change = changeByGateway(clock.nowMs());
    const webhook = await repository.update(webhookId, { action: 'webhook.disable', edit }, change);
    if (webhook?.disabledReason === disabledReason)
      log.error({ webhookId, disabledReason }, 'a webhook was disabled: its endpoint does not accept events');
  }
}

const GATEWAY: Actor = { type: 'gateway', id: null, name: 'gateway' };

function changeByGateway(atMs: number): ChangeContext {
  return { actor: GATEWAY, atMs, reason: null, requestId: '', address: '', onlyTags: [], expects: undefined };
}
