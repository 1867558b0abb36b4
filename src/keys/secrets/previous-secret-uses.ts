import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { PreviousSecretUse, SecretRepository } from './secret-repository.ts';

/** What the notes of uses need. */
export interface PreviousSecretUsesOptions {
  readonly secrets: Pick<SecretRepository, 'noteUses'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** From the start of one write to the start of the next. Milliseconds. */
const INTERVAL_MS = 1000;

/**
 * Notes when the previous secrets of keys were used last, so that an administrator sees when a rotation may be ended. A first use is written
 * at once, further ones together once a second; what could not be written is tried again. Only requests with a previous secret come here.
 */
export class PreviousSecretUses {
  readonly #options: PreviousSecretUsesOptions;
  /** The latest use of each secret that is not written yet. */
  #unwritten = new Map<string, PreviousSecretUse>();
  #writing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: PreviousSecretUsesOptions) {
    this.#options = options;
  }

  /** Notes that a request with a key's previous secret is being served. `secretVersion` is the version of that secret. */
  note(keyId: string, secretVersion: number): void {
    this.#keep({ keyId, secretVersion, atMs: this.#options.clock.nowMs() });
    if (this.#writing === undefined && this.#timer === undefined) this.#start();
  }

  /** Writes what is noted. Resolves when it is written, or could not be. Never rejects. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#writing;
    await this.#write();
  }

  #keep(use: PreviousSecretUse): void {
    const name = `${use.keyId} ${use.secretVersion}`;
    if ((this.#unwritten.get(name)?.atMs ?? 0) <= use.atMs) this.#unwritten.set(name, use);
  }

  #start(): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#writing === undefined && this.#unwritten.size > 0) this.#start();
    }, INTERVAL_MS).unref();
    this.#writing = this.#write().then(() => {
      this.#writing = undefined;
      if (this.#timer === undefined && this.#unwritten.size > 0) this.#start();
    });
  }

  async #write(): Promise<void> {
    const uses = [...this.#unwritten.values()];
    this.#unwritten = new Map();
    try {
      if (uses.length > 0) await this.#options.secrets.noteUses(uses);
    } catch (error) {
      for (const use of uses) this.#keep(use);
      // Expected while the record store is unavailable, which is logged elsewhere.
      this.#options.log.debug(
        { err: error },
        'uses of previous secrets could not be noted; it is tried again',
      );
    }
  }
}
