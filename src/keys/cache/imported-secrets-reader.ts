import type { ImportedSecrets, SecretRepository } from '../secrets/secret-repository.ts';
import { type ReadEnded, SingleFlight } from './single-flight.ts';

/** From the start of one query to the start of the next. Milliseconds. */
const PACE_MS = 10;

/**
 * Reads whether secrets were imported. All callers share the queries: one at a time, a hundred a second at most. Each secret that would be
 * rejected from memory waits for such a query, so that an imported key works with its next request on every replica.
 */
export class ImportedSecretsReader {
  readonly #repository: Pick<SecretRepository, 'importedSecrets'>;
  readonly #reads = new SingleFlight<ImportedSecrets>(1);
  #last: ImportedSecrets | undefined;
  /** Resolves when the next query may start; undefined if it may now. */
  #pause: Promise<void> | undefined;

  constructor(repository: Pick<SecretRepository, 'importedSecrets'>) {
    this.#repository = repository;
  }

  /** The result of the latest query; undefined before the first one. */
  get last(): ImportedSecrets | undefined {
    return this.#last;
  }

  /** Gives the result of a query that begins after this call. */
  read(ended: ReadEnded<ImportedSecrets>): void {
    this.#reads.join('', (begun) => this.#query(begun), ended);
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

  async #query(begun: () => void): Promise<ImportedSecrets> {
    if (this.#pause !== undefined) await this.#pause;
    begun();
    this.#pause = new Promise((resolve) => setTimeout(resolve, PACE_MS)).then(() => {
      this.#pause = undefined;
    });
    this.#last = await this.#repository.importedSecrets();
    return this.#last;
  }
}
