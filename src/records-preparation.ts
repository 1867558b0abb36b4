import type { Settings } from './config.ts';
import { type Component, ReadinessFault } from './observability/readiness.ts';
import type { Logger } from './platform/logger.ts';
import type { Records } from './storage/postgres/open-records.ts';

const RETRY_MS = 1000;

/**
 * Brings the record store to what this version of the program needs, however long the store is away: applies the migrations, or waits for
 * somebody else to. It is also what readiness asks about the store.
 */
export class RecordsPreparation implements Component {
  readonly name = 'postgres';
  readonly #records: Records;
  readonly #settings: Pick<Settings, 'autoMigrate' | 'defaultPlanId'>;
  readonly #log: Logger;
  #state: 'preparing' | 'pending' | 'prepared' = 'preparing';
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();
  #endPause: () => void = () => {};
  #isFailing = false;

  constructor(records: Records, settings: Pick<Settings, 'autoMigrate' | 'defaultPlanId'>, log: Logger) {
    this.#records = records;
    this.#settings = settings;
    this.#log = log;
  }

  /** Calls `prepared` once the store is as it should be. */
  start(prepared: () => void): void {
    this.#running = this.#prepare(prepared);
  }

  /** Gives up. Resolves when no attempt is under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#endPause();
    await this.#running;
  }

  async check(): Promise<void> {
    await this.#records.ping();
    if (this.#state === 'pending') throw new ReadinessFault('migrations are pending: run npm run migrate');
    if (this.#state === 'preparing') throw new ReadinessFault('migrations are being applied');
  }

  async #prepare(prepared: () => void): Promise<void> {
    while (!this.#isStopped) {
      if (await this.#attempt()) return prepared();
      await this.#pause();
    }
  }

  /** Resolves with whether the store is prepared. */
  async #attempt(): Promise<boolean> {
    try {
      const { autoMigrate } = this.#settings;
      const applied = autoMigrate ? await this.#records.migrate() : [];
      if (applied.length > 0) this.#log.info({ migrations: applied }, 'migrations applied');
      const pending = autoMigrate ? [] : await this.#records.pendingMigrations();
      if (pending.length > 0) {
        this.#state = 'pending';
        return false;
      }
      await this.#checkDefaultPlan();
      this.#state = 'prepared';
      return true;
    } catch (error) {
      if (!this.#isFailing)
        this.#log.error({ err: error }, 'the record store could not be prepared; it is tried again');
      this.#isFailing = true;
      return false;
    }
  }

  async #checkDefaultPlan(): Promise<void> {
    const { defaultPlanId } = this.#settings;
    if (defaultPlanId !== null && (await this.#records.plans.find(defaultPlanId)) === undefined)
      this.#log.warn(
        { defaultPlanId },
        'DEFAULT_PLAN_ID names no plan: keys without a plan of their own are answered 503 until it is made',
      );
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, RETRY_MS);
      this.#endPause = () => {
        clearTimeout(timer);
        resolve();
      };
      if (this.#isStopped) this.#endPause();
    });
  }
}
