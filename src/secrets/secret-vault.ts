// The room `secrets`: credentials, of consumers, administrators and webhooks: their form, and what is stored of them.
// In: the encryption keys, and a secret as its owner has it.
// Out: new secrets, look-up values, and sealed forms that only the same encryption key opens.

import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import type { Random } from '../platform/random.ts';

const CIPHER = 'aes-256-gcm';
const FORMAT = 1;
const SEALER_ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const NONCE_AT = 1 + SEALER_ID_BYTES;
const TAG_AT = NONCE_AT + NONCE_BYTES;
const TEXT_AT = TAG_AT + TAG_BYTES;

/** A sealed secret that was changed, was sealed for another name, or was sealed with an encryption key we do not have. */
export class UnreadableSecret extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'UnreadableSecret';
  }
}

/** How many secrets were found in which state. */
export interface RotationReport {
  /** Sealed again by this run. */
  rotated: number;
  /** Sealed with the first encryption key already. */
  current: number;
  /** Not kept: their look-up values can't be derived again, so the encryption key they were made under must stay in the list. */
  unkept: number;
}

/** What links the entries of the audit log, as its chain takes it. */
interface AuditKeys {
  /** That of the encryption key. */
  readonly id: Buffer;
  readonly entries: KeyObject;
  readonly ends: KeyObject;
}

/** What is derived from one encryption key. */
interface Keys {
  /** Identifies the encryption key that sealed a blob, without revealing it. */
  readonly id: Buffer;
  readonly lookup: KeyObject;
  readonly digestLookup: KeyObject;
  readonly sealing: KeyObject;
  readonly chain: AuditKeys;
}

/**
 * Turns secrets into what may be stored: a look-up value, and a sealed form that only we can open.
 *
 * Built from one or more encryption keys of 32 bytes. The first one seals secrets and makes look-up values; all of them open secrets and
 * find keys, so that secrets stay readable after a new encryption key is put in front. Throws when an encryption key has another length.
 *
 * Sealed form: format byte 1, 4 bytes id of the encryption key, 12 bytes nonce, 16 bytes tag, then the secret under AES-256-GCM with the
 * consumer key's id as additional data: it can't be opened in the row of another key.
 */
export class SecretVault {
  readonly #first: Keys;
  readonly #all: readonly Keys[];
  readonly #random: Random;

  constructor(encryptionKeys: readonly Buffer[], random: Random) {
    this.#all = encryptionKeys.map(deriveKeys);
    const [first] = this.#all;
    if (first === undefined) {
      throw new Error('The vault needs an encryption key.');
    }
    this.#first = first;
    this.#random = random;
  }

  /** What links the audit log: a key for each encryption key, the first one's first. */
  get chainKeys(): readonly AuditKeys[] {
    return this.#all.map(({ chain }) => chain);
  }

  /** HMAC-SHA256 of the secret, 32 bytes: what is stored for a new key. */
  lookup(secret: string): Buffer {
    return hmac(this.#first.lookup, secret);
  }

  /** The look-up values under each encryption key, the first one's first: what a stored key may be found by. */
  lookups(secret: string): readonly Buffer[] {
    return this.#all.map(({ lookup }) => hmac(lookup, secret));
  }

  /** HMAC-SHA256 of a secret's SHA-256 digest, 32 bytes: what is stored so that a secret can be found by its digest alone. */
  digestLookup(digest: Buffer): Buffer {
    return hmac(this.#first.digestLookup, digest);
  }

  /** The same under each encryption key, the first one's first. */
  digestLookups(digest: Buffer): readonly Buffer[] {
    return this.#all.map(({ digestLookup }) => hmac(digestLookup, digest));
  }

  seal(name: string, secret: string): Buffer {
    const nonce = this.#random.bytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#first.sealing, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(name));
    const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
    return Buffer.concat([Buffer.of(FORMAT), this.#first.id, nonce, cipher.getAuthTag(), text]);
  }

  /** Seals the digest of a secret. The result can't be opened as the secret of the same name. */
  sealDigest(name: string, digest: Buffer): Buffer {
    return this.seal(digestContext(name), digest.toString('base64'));
  }

  /** The digest that was sealed under this name. Throws `UnreadableSecret` for anything else. */
  openDigest(name: string, sealed: Buffer): Buffer {
    return Buffer.from(this.open(digestContext(name), sealed), 'base64');
  }

  /** Whether a blob was sealed with the first encryption key. */
  isCurrent(sealed: Buffer): boolean {
    return this.#first.id.equals(sealed.subarray(1, NONCE_AT));
  }

  /** Whether a blob was sealed with any of the encryption keys. */
  knows(sealed: Buffer): boolean {
    return this.#all.some(({ id }) => id.equals(sealed.subarray(1, NONCE_AT)));
  }

  /** The secret that was sealed under this name. Throws `UnreadableSecret` for anything else. */
  open(name: string, sealed: Buffer): string {
    if (sealed.length < TEXT_AT || sealed[0] !== FORMAT) {
      throw new UnreadableSecret('The sealed secret has an unknown format.');
    }
    const sealer = this.#all.find(({ id }) => id.equals(sealed.subarray(1, NONCE_AT)));
    if (sealer === undefined) {
      throw new UnreadableSecret(
        'The secret was sealed with an encryption key that is not among ENCRYPTION_KEY.',
      );
    }
    const decipher = createDecipheriv(CIPHER, sealer.sealing, sealed.subarray(NONCE_AT, TAG_AT), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(Buffer.from(name));
    decipher.setAuthTag(sealed.subarray(TAG_AT, TEXT_AT));
    try {
      return Buffer.concat([decipher.update(sealed.subarray(TEXT_AT)), decipher.final()]).toString('utf8');
    } catch (error) {
      throw new UnreadableSecret('The sealed secret was changed, or was sealed for something else.', error);
    }
  }
}

/** What a sealed digest is bound to, in the place of the key's id. */
function digestContext(name: string): string {
  return `${name} digest`;
}

function deriveKeys(encryptionKey: Buffer): Keys {
  if (encryptionKey.length !== 32) {
    throw new Error('An encryption key must have 32 bytes.');
  }
  const derive = (purpose: string, length: number) =>
    Buffer.from(hkdfSync('sha256', encryptionKey, '', `tollgate ${purpose} v1`, length));
  const id = derive('sealing key id', SEALER_ID_BYTES);
  const chain = {
    id,
    entries: createSecretKey(derive('audit entries', 32)),
    ends: createSecretKey(derive('audit ends', 32)),
  };
  return {
    id,
    chain,
    lookup: createSecretKey(derive('look-up', 32)),
    digestLookup: createSecretKey(derive('look-up by digest', 32)),
    sealing: createSecretKey(derive('sealing', 32)),
  };
}

function hmac(key: KeyObject, value: string | Buffer): Buffer {
  return createHmac('sha256', key).update(value).digest();
}
