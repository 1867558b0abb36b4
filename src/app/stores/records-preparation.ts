import { unreadableTokens } from '../../admins/rotate-admin-tokens.ts';
import type { Settings } from '../../config/settings.ts';
import { checkEncryptionKey } from '../../keys/secrets/check-encryption-key.ts';
import type { SecretVault } from '../../keys/secrets/secret-vault.ts';
import { type Component, ReadinessFault } from '../../observability/readiness.ts';
import type { Logger } from '../../platform/logger.ts';
import { failureReason } from '../../storage/failure-reason.ts';
import type { Records } from '../../storage/postgres/open-records.ts';

const RETRY_MS = 1000;

interface PreparationOptions {
  readonly records: Records;
  readonly settings: Pick<Settings, 'autoMigrate' | 'defaultPlanId'>;
  /** To see whether it opens what is stored. */
  readonly vault: SecretVault;
  readonly log: Logger;
}

/**
 * Prepares the record store for this version, however long it is unavailable: applies the migrations, or waits until another process has.
 * It is also the readiness check of the store.
 */
export class RecordsPreparation implements Component {
  readonly name = 'postgres';
  readonly #records: Records;
  readonly #settings: Pick<Settings, 'autoMigrate' | 'defaultPlanId'>;
  readonly #log: Logger;
  readonly #vault: SecretVault;
  #state: 'preparing' | 'pending' | 'sealed' | 'prepared' = 'preparing';
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();
  #endPause: () => void = () => {};
  #isFailing = false;

  constructor({ records, settings, vault, log }: PreparationOptions) {
    this.#records = records;
    this.#settings = settings;
    this.#vault = vault;
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
    await this.#records.ping().catch((error: unknown) => {
      throw new ReadinessFault(failureReason(error));
    });
    if (this.#state === 'pending')
      throw new ReadinessFault('migrations are pending: run npm run migrate', 'warn');
    if (this.#state === 'preparing') throw new ReadinessFault('migrations are being applied', 'info');
    if (this.#state === 'sealed') throw new ReadinessFault('ENCRYPTION_KEY does not open the stored keys');
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
      const opened = await checkEncryptionKey(this.#records.sealedKeys, this.#vault);
      if (opened === 'none') {
        this.#state = 'sealed';
        return false;
      }
      if (opened === 'some')
        this.#log.warn(
          'ENCRYPTION_KEY does not open some of the stored keys: add the one that they were made under',
        );
      await this.#checkAdminTokens();
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

  async #checkAdminTokens(): Promise<void> {
    const adminTokenIds = await unreadableTokens(this.#records.sealedTokens, this.#vault);
    if (adminTokenIds.length > 0)
      this.#log.warn(
        { adminTokenIds },
        'ENCRYPTION_KEY does not open these admin tokens, and they are rejected: add the one that they were made under, or make new ones',
      );
  }

  async #checkDefaultPlan(): Promise<void> {
    const { defaultPlanId } = this.#settings;
    if (defaultPlanId !== null && (await this.#records.plans.find(defaultPlanId)) === undefined)
      this.#log.warn(
        { defaultPlanId },
        'DEFAULT_PLAN_ID names no plan: keys without a plan of their own get 503 until it is made',
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
