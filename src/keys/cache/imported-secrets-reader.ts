import type { ImportedSecrets, SecretRepository } from '../secrets/secret-repository.ts';

/** Called with the error, or with the result of a query that began after the call. */
export type ImportsRead = (error: Error | null, imports: ImportedSecrets | undefined) => void;

/** From the start of one query to the start of the next. Milliseconds. */
const PACE_MS = 10;

/**
 * Reads whether secrets were imported. All callers share the queries: one at a time, a hundred a second at most. Each secret that would be
 * rejected from memory waits for such a query, so that an imported key works with its next request on every replica.
 */
export class ImportedSecretsReader {
  readonly #repository: Pick<SecretRepository, 'importedSecrets'>;
  #last: ImportedSecrets | undefined;
  #waiting: ImportsRead[] = [];
  #isRunning = false;
  #isPaused = false;

  constructor(repository: Pick<SecretRepository, 'importedSecrets'>) {
    this.#repository = repository;
  }

  /** The result of the latest query; undefined before the first one. */
  get last(): ImportedSecrets | undefined {
    return this.#last;
  }

  read(ended: ImportsRead): void {
    this.#waiting.push(ended);
    this.#startNext();
  }

  /** Like `read`, but as a promise. */
  next(): Promise<ImportedSecrets> {
    return new Promise((resolve, reject) =>
      this.read((error, imports) => {
        if (imports === undefined) reject(error);
        else resolve(imports);
      }),
    );
  }

  #startNext(): void {
    if (this.#isRunning || this.#isPaused || this.#waiting.length === 0) return;
    this.#isPaused = true;
    setTimeout(() => {
      this.#isPaused = false;
      this.#startNext();
    }, PACE_MS);
    const waiting = this.#waiting;
    this.#waiting = [];
    void this.#run(waiting);
  }

  async #run(waiting: readonly ImportsRead[]): Promise<void> {
    this.#isRunning = true;
    let failure: Error | null = null;
    let imports: ImportedSecrets | undefined;
    try {
      imports = await this.#repository.importedSecrets();
      this.#last = imports;
    } catch (error) {
      failure = error instanceof Error ? error : new Error('A read failed.', { cause: error });
    }
    this.#isRunning = false;
    this.#startNext();
    for (const ended of waiting) ended(failure, imports);
  }
}
