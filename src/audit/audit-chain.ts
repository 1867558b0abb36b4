import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { AuditEntry } from './audit-entry.ts';

/** The hash before the first entry. */
export const CHAIN_START = Buffer.alloc(32);
/** The previous hash of an entry that is written behind a changed end: no entry's hash, so that the log never verifies again. */
const BROKEN_LINK = Buffer.alloc(32, 0xff);
const KEY_ID_BYTES = 4;

/** What is derived from one encryption key for the audit log. */
export interface ChainKey {
  /** Identifies the encryption key, without revealing it. Four bytes. */
  readonly id: Buffer;
  /** Makes the hashes of entries. */
  readonly entries: KeyObject;
  /** Makes the HMACs of the two ends. */
  readonly ends: KeyObject;
}

/** The keys of the chain, and a seal for those that are rotated out. The first key writes; all verify what they wrote. */
export interface ChainSecrets {
  readonly chainKeys: readonly ChainKey[];
  seal(name: string, text: string): Buffer;
  /** Throws for what was changed, has another name, or was sealed with an unknown encryption key. */
  open(name: string, sealed: Buffer): string;
}

/** The newest entry, or the newest of those that were removed for their age. */
export interface ChainEnd {
  /** 0 if there is none. */
  readonly sequence: number;
  readonly hash: Uint8Array;
}

/** The end of the log, or the one before its beginning. */
export type EndName = 'last' | 'pruned';

/**
 * Links the entries of the audit log under keys derived from `ENCRYPTION_KEY`. A person who can write to the database but lacks that key
 * can't make the hash of an entry, nor move an end.
 */
export class AuditChain {
  readonly #secrets: ChainSecrets | null;

  /** Without secrets, every method throws: for programs that make no change. */
  constructor(secrets: ChainSecrets | null) {
    this.#secrets = secrets;
  }

  get #present(): ChainSecrets {
    if (this.#secrets === null) throw new Error('A program without ENCRYPTION_KEY used the audit log.');
    return this.#secrets;
  }

  get #chainKeys(): readonly ChainKey[] {
    return this.#present.chainKeys;
  }

  /** The key that writes. */
  get #first(): ChainKey {
    const [first] = this.#chainKeys;
    if (first === undefined) throw new Error('The audit log needs an encryption key.');
    return first;
  }

  /** The id of the key that makes hashes now. */
  get keyId(): Buffer {
    return this.#first.id;
  }

  /** The hash of an entry, of which the previous one's hash is a part: to change an entry, all later ones must be changed, too. */
  hash(previousHash: Uint8Array, entry: AuditEntry): Buffer {
    return entryHash(this.#first.entries, previousHash, entry);
  }

  /** The key for entries of an encryption key in `ENCRYPTION_KEY`, by its id; undefined if it is not there. */
  entryKey(id: Uint8Array): KeyObject | undefined {
    return this.#chainKeys.find((key) => key.id.equals(id))?.entries;
  }

  /** What is stored beside an end. */
  markEnd(name: EndName, end: ChainEnd): Buffer {
    return Buffer.concat([this.#first.id, endMac(this.#first, name, end)]);
  }

  /** The same under the first key; unchanged if the end was not marked with one of the keys. */
  remark(name: EndName, end: ChainEnd, mark: Uint8Array): Uint8Array {
    return end.sequence > 0 && this.isMarked(name, end, mark) ? this.markEnd(name, end) : mark;
  }

  /** Whether this end was marked with one of the keys. Before the first entry there is nothing to mark. */
  isMarked(name: EndName, end: ChainEnd, mark: Uint8Array): boolean {
    if (end.sequence === 0 && mark.length === 0) return CHAIN_START.equals(end.hash);
    const key = this.#chainKeys.find(({ id }) => id.equals(mark.subarray(0, KEY_ID_BYTES)));
    if (key === undefined) return false;
    const mac = mark.subarray(KEY_ID_BYTES);
    const expected = endMac(key, name, end);
    return mac.length === expected.length && timingSafeEqual(mac, expected);
  }

  /**
   * Whether an end has the mark of one of the keys, or of one that was rotated out under them, and not of another installation. Does not
   * verify the mark. An end without one is that of a new log, or was changed.
   */
  isOfKnownKey(mark: Uint8Array, stored: readonly SealedChainKey[]): boolean {
    const id = mark.subarray(0, KEY_ID_BYTES);
    return (
      mark.length === 0 ||
      [...this.#chainKeys, ...this.retired(stored)].some((key) => Buffer.compare(key.id, id) === 0)
    );
  }

  /** The hash that the next entry continues. Behind an end that is not marked the chain stays broken. */
  linkAfter(end: ChainEnd, mark: Uint8Array): Uint8Array {
    return this.isMarked('last', end, mark) ? end.hash : BROKEN_LINK;
  }

  /** Seals the keys behind the first one, which wrote no entry after `end`, so that they can be removed from `ENCRYPTION_KEY`. */
  retire(end: ChainEnd): readonly SealedChainKey[] {
    return this.#chainKeys.slice(1).map(({ id, entries }) => this.#sealed({ id, entries, end }));
  }

  /** The same keys sealed with the first encryption key. What can't be opened is left out. */
  resealed(stored: readonly SealedChainKey[]): readonly SealedChainKey[] {
    return this.retired(stored).map((key) => this.#sealed(key));
  }

  /** The keys that were rotated out. What was changed in the database from outside can't be opened and is left out. */
  retired(stored: readonly SealedChainKey[]): readonly RetiredChainKey[] {
    return stored.flatMap((key) => this.#opened(key) ?? []);
  }

  #sealed({ id, entries, end }: RetiredChainKey): SealedChainKey {
    const text = [
      entries.export().toString('base64'),
      end.sequence,
      Buffer.from(end.hash).toString('base64'),
    ];
    return { id, sealed: this.#present.seal(sealName(id), JSON.stringify(text)) };
  }

  #opened({ id, sealed }: SealedChainKey): RetiredChainKey | undefined {
    try {
      const [key, sequence, hash] = JSON.parse(this.#present.open(sealName(id), Buffer.from(sealed)));
      const end = { sequence, hash: Buffer.from(hash, 'base64') };
      return { id, entries: createSecretKey(Buffer.from(key, 'base64')), end };
    } catch {
      return undefined;
    }
  }
}

/** A key that was rotated out: it verifies the entries up to its end, and none behind it. */
export interface RetiredChainKey {
  readonly id: Uint8Array;
  readonly entries: KeyObject;
  readonly end: ChainEnd;
}

/** The same as it is stored. */
export interface SealedChainKey {
  readonly id: Uint8Array;
  readonly sealed: Uint8Array;
}

/** The hash of an entry under a key for entries. */
export function entryHash(key: KeyObject, previousHash: Uint8Array, entry: AuditEntry): Buffer {
  const { sequence, atMs, action, actor, target, changesText, reason, requestId, address, outcome, jobId } =
    entry;
  const content = [
    sequence,
    atMs,
    action,
    [actor.type, actor.id, actor.name, ...(actor.email === undefined ? [] : [actor.email])],
    [target.type, target.id, target.name, target.tags],
    changesText,
    reason,
    requestId,
    address,
    outcome,
    // Entries without a job have the hash that they had before there were jobs.
    ...(jobId === null ? [] : [jobId]),
  ];
  return createHmac('sha256', key).update(previousHash).update(JSON.stringify(content)).digest();
}

function endMac({ ends }: ChainKey, name: EndName, { sequence, hash }: ChainEnd): Buffer {
  return createHmac('sha256', ends).update(`${name} ${sequence} `).update(hash).digest();
}

function sealName(id: Uint8Array): string {
  return `audit chain key ${Buffer.from(id).toString('hex')}`;
}
