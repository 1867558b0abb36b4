import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ChangeContext } from '../audit/change-context.ts';
import { type FieldFault, ImportRejected, InvalidBody, PlanNotFound, SecretTaken } from '../errors.ts';
import type { Clock } from '../platform/clock.ts';
import type { ConsumerKey } from './consumer-key.ts';
import { rotationAt } from './key-rotation.ts';
import { type NewKeyFields, newKey, recordOf } from './new-key.ts';
import type { FoundKey, ImportedKey, ImportFailure, SecretRepository } from './secrets/secret-repository.ts';
import {
  type ImportedSecret,
  SEALED_AT_ONCE,
  type SecretMatch,
  type SecretSealer,
} from './secrets/stored-secret.ts';

/** What imports of keys need. */
export interface KeyImportsOptions {
  readonly secrets: SecretRepository;
  readonly sealer: SecretSealer;
  readonly clock: Clock;
  readonly makeId: () => string;
}

/** A key to be imported. */
export interface KeyToImport {
  readonly fields: NewKeyFields;
  readonly secret: ImportedSecret;
}

/** What became of one key of an import. */
export type ImportResult =
  | { readonly index: number; readonly consumerApiKeyId: string }
  | { readonly index: number; readonly code: ImportFailure };

/**
 * Makes keys with secrets from outside, and finds keys by their secrets. A secret belongs to one key: of two imports of the same secret at
 * the same time, on whichever replicas, one is rejected. An imported key works on every replica with its next request.
 */
export class KeyImports {
  readonly #options: KeyImportsOptions;

  constructor(options: KeyImportsOptions) {
    this.#options = options;
  }

  /** Makes a key with a secret that its owner has already. Throws `SecretTaken` or `PlanNotFound`. */
  async create(fields: NewKeyFields, secret: string, change: ChangeContext): Promise<ConsumerKey> {
    const imported = this.#sealed({ fields, secret: { kind: 'given', secret } }, change);
    const options = { onConflict: 'fail', action: 'key.create' } as const;
    const [failure] = await this.#options.secrets.import([imported], options, change);
    if (failure === 'secret_taken') throw new SecretTaken();
    if (failure === 'plan_not_found') throw new PlanNotFound();
    return recordOf(imported.key);
  }

  /**
   * Makes keys in one transaction, in the order of the list. If secrets are taken, `onConflict` `fail` makes no key and throws
   * `ImportRejected`, which names the keys concerned; `skip` makes all others. In both cases throws `ImportRejected` if a plan does not
   * exist.
   */
  async import(
    keys: readonly KeyToImport[],
    onConflict: 'fail' | 'skip',
    change: ChangeContext,
  ): Promise<readonly ImportResult[]> {
    const imported = await this.#allSealed(keys, change);
    const failures = await this.#options.secrets.import(
      imported,
      { onConflict, action: 'key.import' },
      change,
    );
    const rejected = failures.flatMap((code, index) => (code === undefined ? [] : [{ index, code }]));
    const [first] = rejected;
    if (first !== undefined && (onConflict === 'fail' || first.code === 'plan_not_found'))
      throw new ImportRejected(first.code, rejected);
    return imported.map(({ key }, index) => {
      const code = failures[index];
      return code === undefined ? { index, consumerApiKeyId: key.id } : { index, code };
    });
  }

  /** The key that has the secret as its present or previous one; undefined if the secret is not valid. */
  async find(secret: string): Promise<FoundKey | undefined> {
    const { secrets, sealer, clock } = this.#options;
    const found = await secrets.findBySecret(sealer.matchOf({ kind: 'given', secret }));
    if (found === undefined) return undefined;
    const key = rotationAt(found.key, clock.nowMs());
    return found.isPrevious && key.rotation === null ? undefined : { key, isPrevious: found.isPrevious };
  }

  /** How many of the secrets are taken, but by no key that a principal with these tags sees: those of which a rejection would tell it. */
  async countOutOfSight(secrets: readonly ImportedSecret[], onlyTags: readonly string[]): Promise<number> {
    if (secrets.length === 0 || onlyTags.length === 0) return 0;
    const matches: SecretMatch[] = [];
    for (const [index, secret] of secrets.entries()) {
      if (index % SEALED_AT_ONCE === 0) await nextTurn();
      matches.push(this.#options.sealer.matchOf(secret));
    }
    return this.#options.secrets.countOutOfSight(matches, onlyTags);
  }

  async #allSealed(keys: readonly KeyToImport[], change: ChangeContext): Promise<readonly ImportedKey[]> {
    const faults: FieldFault[] = [];
    const sealed: ImportedKey[] = [];
    for (const [index, key] of keys.entries()) {
      if (index % SEALED_AT_ONCE === 0) await nextTurn();
      try {
        sealed.push(this.#sealed(key, change));
      } catch (error) {
        if (!(error instanceof InvalidBody)) throw error;
        faults.push(...error.under(`keys[${index}]`).faults);
      }
    }
    if (faults.length > 0) throw new InvalidBody(faults);
    return sealed;
  }

  #sealed({ fields, secret }: KeyToImport, change: ChangeContext): ImportedKey {
    const { sealer } = this.#options;
    const id = this.#options.makeId();
    const key = newKey(id, { ...fields, secret: sealer.sealImported(id, secret) }, change);
    return { key, match: sealer.matchOf(secret) };
  }
}
