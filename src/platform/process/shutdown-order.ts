import type { Logger } from '../logger.ts';
import { withinDeadline } from '../within-deadline.ts';

/**
 * A part that has taken longer than this to stop makes no further query: the store may hang, and a second query would end after the
 * deadline of the part. Milliseconds.
 */
export const LAST_QUERY_BY_MS = 900;

interface Resource {
  readonly name: string;
  readonly stop: () => Promise<void> | void;
  readonly deadlineMs: number;
}

/** Keeps what was started, to stop it in reverse order, each within its deadline. */
export class ShutdownOrder {
  readonly #resources: Resource[] = [];
  readonly #log: Logger;
  #stopping: Promise<boolean> | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Registers how to stop a resource that was started. `deadlineMs` is the longest that `stop` may take. */
  add(name: string, deadlineMs: number, stop: () => Promise<void> | void): void {
    this.#resources.push({ name, stop, deadlineMs });
  }

  /**
   * Stops all resources, the newest first. A failure or a missed deadline is logged, and the others are still stopped. Resolves with true
   * if all stopped cleanly. A second call gets the same promise.
   */
  stop(): Promise<boolean> {
    this.#stopping ??= this.#stopAll();
    return this.#stopping;
  }

  async #stopAll(): Promise<boolean> {
    let clean = true;
    for (const resource of this.#resources.toReversed()) {
      clean = (await this.#stopOne(resource)) && clean;
    }
    return clean;
  }

  async #stopOne({ name, stop, deadlineMs }: Resource): Promise<boolean> {
    const late = () => new Error(`not stopped after ${deadlineMs} ms`);
    try {
      await withinDeadline(Promise.resolve(stop()), deadlineMs, late);
      this.#log.debug({ resource: name }, 'stopped');
      return true;
    } catch (error) {
      this.#log.error({ resource: name, err: error }, 'could not be stopped cleanly');
      return false;
    }
  }
}
