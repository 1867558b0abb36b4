import type { Redis } from 'ioredis';
import type { Clock } from '../../../platform/clock.ts';
import { ServerClock } from './server-clock.ts';

/** How long to wait before the server's time is requested again after a failure. */
const ASK_AGAIN_MS = 200;

/** One server that makes decisions, and what is known of its clock. */
export class DecisionServer {
  readonly redis: Redis;
  readonly time = new ServerClock();
  readonly #clock: Clock;
  #isHeld = false;
  #wasReady = false;

  constructor(redis: Redis, clock: Clock) {
    this.redis = redis;
    this.#clock = clock;
    redis.on('ready', () => void this.#askTime());
    redis.on('close', () => this.time.forget());
    if (redis.status === 'ready') void this.#askTime();
  }

  /** True while there is a connection on which the server's time is known. */
  get isReady(): boolean {
    return this.redis.status === 'ready' && this.time.isKnown;
  }

  /** True until it was ready once: its first connection is being made, or none was needed yet. */
  get isNew(): boolean {
    return !this.#wasReady;
  }

  /** Buffers writes to the server until the end of the event-loop turn: one system call, one packet. */
  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    const { stream } = this.redis;
    stream.cork();
    setImmediate(() => {
      this.#isHeld = false;
      stream.uncork();
    });
  }

  async #askTime(): Promise<void> {
    const sentAt = this.#clock.monotonicMs();
    try {
      const [seconds, microseconds] = await this.redis.time();
      const serverMs = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
      this.time.learn(serverMs, sentAt, this.#clock.monotonicMs());
      this.#wasReady = true;
    } catch {
      // If the connection broke, 'ready' reads the time again; if it is still up, this does.
      setTimeout(() => {
        if (this.redis.status === 'ready' && !this.time.isKnown) void this.#askTime();
      }, ASK_AGAIN_MS).unref();
    }
  }
}
