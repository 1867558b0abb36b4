import type { ChangeFeed } from '../../../limiter/record-versions.ts';
import { failureReason } from '../../failure-reason.ts';
import type { RedisConnection } from '../redis-connection.ts';
import { CHANGES_CHANNEL } from '../redis-key-names.ts';

/** How often the subscription is pinged: a half-open socket is noticed only by writing to it. */
const PING_INTERVAL_MS = 5000;

/** Listens on `tg:changes` over a separate connection. */
export class RedisChangeFeed implements ChangeFeed {
  readonly #changed: ((keyId: string) => void)[] = [];
  readonly #reset: (() => void)[] = [];
  readonly #redis: RedisConnection;
  readonly #ping: NodeJS.Timeout;
  #isSubscribed = false;
  #fault: string | undefined;

  /** Subscribes at once, and again whenever the connection was lost. */
  constructor(redis: RedisConnection) {
    this.#redis = redis;
    redis.on('message', (channel: string, keyIds: string) => {
      if (channel !== CHANGES_CHANNEL) return;
      for (const keyId of keyIds.split(' ')) for (const changed of this.#changed) changed(keyId);
    });
    // The client does not resubscribe by itself: only the reply to SUBSCRIBE says from when on no message is missed.
    redis.on('ready', () => void this.#subscribe());
    redis.on('close', () => this.#interrupted());
    this.#ping = setInterval(() => void this.#tryConnection(), PING_INTERVAL_MS);
    this.#ping.unref();
  }

  /** True while changes arrive: nothing published since the last `onReset` was missed. */
  get isSubscribed(): boolean {
    return this.#isSubscribed;
  }

  /** Why the server rejects the subscription, although there is a connection, for the readiness check; undefined if it does not. */
  get fault(): string | undefined {
    return this.#fault;
  }

  onChange(changed: (keyId: string) => void): void {
    this.#changed.push(changed);
  }

  onReset(reset: () => void): void {
    this.#reset.push(reset);
  }

  /** Makes caches forget everything. To be called when a connection may lead to another server, which may have missed changes. */
  distrust(): void {
    for (const reset of this.#reset) reset();
  }

  /** Stops the timer. The owner of the connection closes it. */
  stop(): void {
    clearInterval(this.#ping);
  }

  async #subscribe(): Promise<void> {
    try {
      await this.#redis.subscribe(CHANGES_CHANNEL);
      this.#isSubscribed = true;
      this.#fault = undefined;
      this.distrust();
    } catch (error) {
      // Else the connection broke: 'close' follows, then 'ready' and another attempt.
      if (error instanceof Error && error.name === 'ReplyError') this.#fault = failureReason(error);
    }
  }

  /** Caches miss changes from here on, so they are cleared once now and once when the feed is back. */
  #interrupted(): void {
    this.#fault = undefined;
    if (!this.#isSubscribed) return;
    this.#isSubscribed = false;
    this.distrust();
  }

  async #tryConnection(): Promise<void> {
    if (this.#redis.status !== 'ready') return;
    if (this.#fault !== undefined) return this.#subscribe();
    try {
      await this.#redis.ping();
    } catch {
      // No response in time: the socket timeout closes the connection and 'close' is emitted.
    }
  }
}
