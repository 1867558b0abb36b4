import { unreadableTokens } from '../../admins/rotate-admin-tokens.ts';
import { StoreUnavailable } from '../../errors.ts';
import { checkEncryptionKey } from '../../keys/secrets/check-encryption-key.ts';
import { type Component, ReadinessFault } from '../../observability/readiness.ts';
import type { Logger } from '../../platform/logger.ts';
import type { SecretVault } from '../../secrets/secret-vault.ts';
import type { Settings } from '../../settings/settings.ts';
import { failureReason, isPassing, isUnwritable } from '../../storage/failure-reason.ts';
import type { Records } from '../../storage/postgres/open-records.ts';

const SEALED = 'ENCRYPTION_KEY does not open the stored keys';
const RETRY_MS = 1000;
/** How often a configuration with a conflict, which a person has to solve, is retried. */
const CONFIGURE_RETRY_MS = 5000;
/** Conflicts in a line of the log. */
const MOST_LOGGED = 1000;

/** The parts of the record store that preparation needs. */
type PreparedRecords = Pick<
  Records,
  'migrate' | 'pendingMigrations' | 'ping' | 'plans' | 'sealedKeys' | 'sealedTokens' | 'audit'
>;

interface PreparationOptions {
  readonly records: PreparedRecords;
  readonly settings: Pick<Settings, 'autoMigrate' | 'defaultPlanId'>;
  /** To check whether it opens the stored secrets. */
  readonly vault: SecretVault;
  readonly log: Logger;
}

/** The steps before and after the store is ready. */
interface PreparationSteps {
  /** Applies the configuration of the settings. Resolves with the reasons why it can't be applied. Undefined if there is none. */
  readonly configure: (() => Promise<readonly string[]>) | undefined;
  /** Called once the store is prepared. */
  readonly prepared: () => void;
}

/**
 * Prepares the record store for this version, however long it is unavailable: applies the migrations, or waits until another process has
 * applied them. It is also the readiness check of the store.
 */
export class RecordsPreparation implements Component {
  readonly name = 'postgres';
  readonly #records: PreparedRecords;
  readonly #settings: Pick<Settings, 'autoMigrate' | 'defaultPlanId'>;
  readonly #log: Logger;
  readonly #vault: SecretVault;
  #state: 'preparing' | 'pending' | 'sealed' | 'conflicting' | 'prepared' = 'preparing';
  #conflicts: readonly string[] = [];
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();
  #endPause: () => void = () => {};
  /** What the last attempt failed with; undefined before the first failure. */
  #failure: unknown;
  /** Warnings already logged: each attempt repeats its checks, but not its warnings. */
  readonly #warnings = new Set<string>();

  constructor({ records, settings, vault, log }: PreparationOptions) {
    this.#records = records;
    this.#settings = settings;
    this.#vault = vault;
    this.#log = log;
  }

  start(steps: PreparationSteps): void {
    this.#running = this.#prepare(steps);
  }

  /** Stops trying. Resolves when no attempt is running. */
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
    if (this.#state === 'preparing') {
      // Else an outage is over: the store has just responded.
      if (this.#failure === undefined || !mayLast(this.#failure))
        throw new ReadinessFault('migrations are being applied', 'info');
      throw new ReadinessFault(
        `the records could not be prepared, see the log: ${failureReason(this.#failure)}`,
      );
    }
    if (this.#state === 'conflicting') {
      const [first = '', ...others] = this.#conflicts;
      const more = others.length === 0 ? '' : `, and ${others.length} more, see the log`;
      throw new ReadinessFault(`CONFIG_FILE can not be applied: ${first}${more}`);
    }
    if (this.#state === 'sealed') throw new ReadinessFault(SEALED);
  }

  /**
   * To be called before secrets are looked up, and before a change. Throws `StoreUnavailable` while `ENCRYPTION_KEY` opens none of the stored
   * keys: no secret is found then, which does not show that it is wrong, and a change would break the audit log for good.
   */
  requireOpenKeys(): void {
    if (this.#state === 'sealed') throw new StoreUnavailable('postgres', new Error(SEALED));
  }

  async #prepare({ configure, prepared }: PreparationSteps): Promise<void> {
    while (!this.#isStopped) {
      if (await this.#attempt(configure)) return prepared();
      await this.#pause(this.#state === 'conflicting' ? CONFIGURE_RETRY_MS : RETRY_MS);
    }
  }

  /** Resolves with whether the store is prepared. */
  async #attempt(configure: PreparationSteps['configure']): Promise<boolean> {
    try {
      const { autoMigrate } = this.#settings;
      const applied = autoMigrate ? await this.#records.migrate() : [];
      if (applied.length > 0) this.#log.info({ migrations: applied }, 'migrations applied');
      const pending = autoMigrate ? [] : await this.#records.pendingMigrations();
      if (pending.length > 0) {
        this.#state = 'pending';
        return false;
      }
      const opened = await checkEncryptionKey(this.#records, this.#vault);
      if (opened === 'none') {
        this.#state = 'sealed';
        return false;
      }
      // The configuration is a change, too.
      if (this.#state === 'sealed') this.#state = 'preparing';
      if (opened === 'some')
        this.#warnOnce(
          {},
          'ENCRYPTION_KEY does not open some of the stored keys: add the one that they were made under',
        );
      await this.#checkAdminTokens();
      if (configure !== undefined && !(await this.#isConfigured(configure))) return false;
      await this.#checkDefaultPlan();
      this.#state = 'prepared';
      return true;
    } catch (error) {
      if (String(error) !== String(this.#failure) || failureReason(error) !== failureReason(this.#failure))
        this.#log.error({ err: error }, 'the record store could not be prepared; it is tried again');
      this.#failure = error;
      // What an earlier attempt found is not what is wrong now. Closed keys stay closed until an attempt finds them open.
      if (this.#state !== 'sealed' && mayLast(error)) this.#state = 'preparing';
      return false;
    }
  }

  async #isConfigured(configure: () => Promise<readonly string[]>): Promise<boolean> {
    const conflicts = await configure();
    if (conflicts.length === 0) return true;
    this.#state = 'conflicting';
    if (conflicts.join() !== this.#conflicts.join())
      this.#log.error(
        { conflicts: conflicts.slice(0, MOST_LOGGED), count: conflicts.length },
        'CONFIG_FILE can not be applied to what there is; it is tried again',
      );
    this.#conflicts = conflicts;
    return false;
  }

  async #checkAdminTokens(): Promise<void> {
    const adminTokenIds = await unreadableTokens(this.#records.sealedTokens, this.#vault);
    if (adminTokenIds.length > 0)
      this.#warnOnce(
        { adminTokenIds },
        'ENCRYPTION_KEY does not open these admin tokens, and they are rejected: add the one that they were made under, or make new ones',
      );
  }

  async #checkDefaultPlan(): Promise<void> {
    const { defaultPlanId } = this.#settings;
    if (defaultPlanId !== null && (await this.#records.plans.find(defaultPlanId)) === undefined)
      this.#warnOnce(
        { defaultPlanId },
        'DEFAULT_PLAN_ID names no plan: keys without a plan of their own get 503 until it is made',
      );
  }

  #warnOnce(fields: object, sentence: string): void {
    const warning = JSON.stringify([fields, sentence]);
    if (this.#warnings.has(warning)) return;
    this.#warnings.add(warning);
    this.#log.warn(fields, sentence);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#endPause = () => {
        clearTimeout(timer);
        resolve();
      };
      if (this.#isStopped) this.#endPause();
    });
  }
}

/** Whether an attempt failed for a reason that a store which responds may still have. */
function mayLast(failure: unknown): boolean {
  return !isPassing(failure) || isUnwritable(failure);
}
