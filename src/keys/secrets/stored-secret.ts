import { digestOfSecret } from '../../secrets/secret-digest.ts';
import { secretHint } from '../../secrets/secret-format.ts';
import type { SecretVault } from '../../secrets/secret-vault.ts';

/** Made by the gateway, given from outside, or known only by its SHA-256 digest. */
export type SecretOrigin = 'generated' | 'given' | 'hashed';

/** What is stored of a secret. */
export interface StoredSecret {
  readonly secretOrigin: SecretOrigin;
  /** As in `ConsumerKey`. */
  readonly secretHint: string | null;
  /** HMAC of the secret, or of its digest where only that is known: what the key is found by. */
  readonly lookup: Buffer;
  /** HMAC of the secret's digest, by which equal secrets are recognised. */
  readonly digestLookup: Buffer;
  /** The secret, encrypted; null when it is unknown, or never to be shown again. */
  readonly sealedSecret: Buffer | null;
  /** The digest, encrypted, of a secret that is known only by it; null for any other. */
  readonly sealedDigest: Buffer | null;
}

/** A secret from outside: as it is, or its SHA-256 digest. */
export type ImportedSecret =
  | { readonly kind: 'given'; readonly secret: string }
  | { readonly kind: 'hashed'; readonly digest: Buffer };

/** The values by which a stored secret is recognised as equal, under each encryption key. */
export interface SecretMatch {
  /** HMACs of the secret; empty where only its digest is known. */
  readonly lookups: readonly Buffer[];
  /** HMACs of its digest. */
  readonly digestLookups: readonly Buffer[];
  /** It is a credential of another kind, and must not be a key's. */
  readonly isReserved: boolean;
}

/** Keys that are sealed in one turn of the event loop: more at once would delay other requests. */
export const SEALED_AT_ONCE = 100;

/** What is needed to store secrets. */
export interface SecretSealerOptions {
  readonly vault: SecretVault;
  /** `once`: secrets are not stored in a form that could be opened. */
  readonly reveal: 'always' | 'once';
  /** SHA-256 of credentials of another kind; none by default. */
  readonly reservedDigests?: readonly Buffer[];
}

/** Makes what is stored of secrets. */
export class SecretSealer {
  readonly #vault: SecretVault;
  readonly #reveal: 'always' | 'once';
  readonly #reservedDigests: readonly Buffer[];

  constructor({ vault, reveal, reservedDigests = [] }: SecretSealerOptions) {
    this.#vault = vault;
    this.#reveal = reveal;
    this.#reservedDigests = reservedDigests;
  }

  /** For a secret in plain text. */
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

  /** For a secret from outside. */
  sealImported(keyId: string, imported: ImportedSecret): StoredSecret {
    if (imported.kind === 'given') return this.seal(keyId, imported.secret, 'given');
    const lookup = this.#vault.digestLookup(imported.digest);
    return {
      secretOrigin: 'hashed',
      secretHint: null,
      lookup,
      digestLookup: lookup,
      sealedSecret: null,
      sealedDigest: this.#vault.sealDigest(keyId, imported.digest),
    };
  }

  matchOf(imported: ImportedSecret): SecretMatch {
    const isGiven = imported.kind === 'given';
    const digest = isGiven ? digestOfSecret(imported.secret) : imported.digest;
    return {
      lookups: isGiven ? this.#vault.lookups(imported.secret) : [],
      digestLookups: this.#vault.digestLookups(digest),
      isReserved: this.#reservedDigests.some((reserved) => reserved.equals(digest)),
    };
  }
}
