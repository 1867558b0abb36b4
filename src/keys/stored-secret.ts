import { hash } from 'node:crypto';
import { secretHint } from './secret-format.ts';
import type { SecretVault } from './secret-vault.ts';

/** Made by the gateway, given from outside, or known only by its SHA-256 digest. */
export type SecretOrigin = 'generated' | 'given' | 'hashed';

/** What is stored of a secret. */
export interface StoredSecret {
  readonly secretOrigin: SecretOrigin;
  /** As in `ConsumerKey`. */
  readonly secretHint: string | null;
  /** HMAC of the secret, or of its digest where only that is known: what the key is found by. */
  readonly lookup: Buffer;
  /** HMAC of its digest: what tells that two secrets are equal. Null: not noted. */
  readonly digestLookup: Buffer | null;
  /** The secret, encrypted; null when it is unknown, or never to be shown again. */
  readonly sealedSecret: Buffer | null;
  /** The digest, encrypted, of a secret that is known only by it; null for any other. */
  readonly sealedDigest: Buffer | null;
}

/** SHA-256 of a secret. */
function digestOfSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

/** Makes what is stored of secrets. `once`: not in a form that could be opened. */
export class SecretSealer {
  readonly #vault: SecretVault;
  readonly #reveal: 'always' | 'once';

  constructor(vault: SecretVault, reveal: 'always' | 'once') {
    this.#vault = vault;
    this.#reveal = reveal;
  }

  /** Of a secret that is known. */
  seal(keyId: string, secret: string, secretOrigin: 'generated' | 'given'): StoredSecret {
    return {
      secretOrigin,
      secretHint: secretHint(secret, secretOrigin),
      lookup: this.#vault.lookup(secret),
      digestLookup: this.#vault.digestLookup(digestOfSecret(secret)),
      sealedSecret: this.#reveal === 'once' ? null : this.#vault.seal(keyId, secret),
      sealedDigest: null,
    };
  }
}
