import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ChangeContext } from '../audit/change-context.ts';
import { newKey } from '../keys/new-key.ts';
import { SEALED_AT_ONCE, type SecretSealer } from '../keys/secrets/stored-secret.ts';
import type { Random } from '../platform/random.ts';
import { createSecret } from '../secrets/secret-format.ts';
import type { DesiredKey } from './desired-state.ts';
import type { NewManagedKey } from './desired-state-store.ts';
import type { Difference } from './difference.ts';
import { digestOf, writtenKey } from './written-state.ts';

/** What `NewManagedKeys` is built from. */
export interface NewManagedKeysOptions {
  readonly sealer: SecretSealer;
  readonly random: Random;
  readonly makeId: () => string;
  /** The prefix of new secrets. */
  readonly keyPrefix: string;
}

/** A new secret, which is never shown again. */
export interface RevealedSecret {
  readonly externalId: string;
  readonly keyId: string;
  readonly secret: string;
}

/** Makes the keys that exist only in the configuration. A key without the hash of a secret gets a generated one. */
export class NewManagedKeys {
  readonly #options: NewManagedKeysOptions;

  constructor(options: NewManagedKeysOptions) {
    this.#options = options;
  }

  /** Makes the keys that a difference creates. */
  async make(
    { keys }: Difference,
    owner: string,
    change: ChangeContext,
  ): Promise<{ readonly newKeys: readonly NewManagedKey[]; readonly secrets: readonly RevealedSecret[] }> {
    const newKeys: NewManagedKey[] = [];
    const secrets: RevealedSecret[] = [];
    for (const { action, wanted } of keys) {
      if (action !== 'create' || wanted === undefined) continue;
      if (newKeys.length % SEALED_AT_ONCE === SEALED_AT_ONCE - 1) await nextTurn();
      const { made, secret } = this.#makeKey(wanted, owner, change);
      newKeys.push(made);
      const { externalId } = wanted;
      if (secret !== undefined) secrets.push({ externalId, keyId: made.key.id, secret });
    }
    return { newKeys, secrets };
  }

  #makeKey(
    wanted: DesiredKey,
    owner: string,
    change: ChangeContext,
  ): { readonly made: NewManagedKey; readonly secret: string | undefined } {
    const { sealer, random, keyPrefix } = this.#options;
    const { secretDigest, ...fields } = wanted;
    const id = this.#options.makeId();
    const managedDigest = digestOf(writtenKey(wanted));
    const make = (secret: Parameters<typeof newKey>[1]['secret']) =>
      newKey(id, { ...fields, managedBy: owner, secret }, change);
    if (secretDigest !== null) {
      const imported = { kind: 'hashed', digest: secretDigest } as const;
      const key = make(sealer.sealImported(id, imported));
      return { made: { key, match: sealer.matchOf(imported), managedDigest }, secret: undefined };
    }
    const secret = createSecret(keyPrefix, random);
    const key = make(sealer.seal(id, secret, 'generated'));
    return { made: { key, match: undefined, managedDigest }, secret };
  }
}
