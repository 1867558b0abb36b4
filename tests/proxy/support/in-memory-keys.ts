import type { ProxyRecords } from '../../../src/app/wiring/wire-proxy.ts';
import { KeyCache } from '../../../src/keys/cache/key-cache.ts';
import type { KeySnapshot } from '../../../src/keys/consumer-key.ts';
import { OriginList } from '../../../src/keys/origin-list.ts';
import type { SharedVersions } from '../../../src/limiter/record-versions.ts';
import { systemClock } from '../../../src/platform/clock.ts';

/** A record store in this process, with what the proxied side reads of keys. */
export class InMemoryKeys {
  /** Keys by secret. */
  readonly snapshots = new Map<string, KeySnapshot>();
  /** Makes it fail. */
  isDown = false;
  /** Keeps the regular checks from finding outdated copies. */
  hidesOutdated = false;
  /** How long it takes. Milliseconds. */
  delayMs = 0;
  /** Resolves when it responds again; undefined while it does. */
  #held: PromiseWithResolvers<void> | undefined = undefined;
  /** What keys have in their `allowedOrigins`, by secret. */
  readonly #allowedOrigins = new Map<string, readonly string[]>();
  readonly #versions: SharedVersions;

  /** Changes are announced to `versions`. */
  constructor(versions: SharedVersions) {
    this.#versions = versions;
  }

  /** What the proxied side asks of the records. */
  readonly records: ProxyRecords = {
    keys: {
      findOriginEntries: (entries) =>
        this.#read(() => {
          const allowed = new Set([...this.#allowedOrigins.values()].flat());
          return entries.filter((entry) => allowed.has(entry));
        }),
      findOutdated: (copies) =>
        this.#read(() =>
          copies.flatMap(({ keyId, version }) => {
            const stored = this.#find(keyId);
            if (this.hidesOutdated || stored?.version === version) return [];
            return [{ keyId, version: stored?.version ?? version, isGone: stored === undefined }];
          }),
        ),
    },
    secrets: { noteUses: async () => {} },
  };

  /** A cache of these keys. */
  cache(): KeyCache {
    return new KeyCache({
      repository: {
        findSnapshotsByLookup: (lookups) =>
          this.#read(() =>
            lookups.flatMap((lookup) => {
              const snapshot = this.snapshots.get(lookup.toString());
              return snapshot === undefined
                ? []
                : [{ lookup, snapshot, secretVersion: snapshot.secretVersion }];
            }),
          ),
        findSnapshotsOrErrors: (keyIds) =>
          this.#read(() => {
            const found = keyIds.map((keyId) => this.#find(keyId)).filter((key) => key !== undefined);
            return new Map(found.map((key) => [key.keyId, key]));
          }),
      },
      secrets: { importedSecrets: () => this.#read(() => ({ version: 0, given: false, hashed: false })) },
      vault: { lookups: (secret) => [Buffer.from(secret)], digestLookups: () => [] },
      clock: systemClock,
    });
  }

  /** Does not respond until `release`. */
  hold(): void {
    this.#held = Promise.withResolvers();
  }

  release(): void {
    this.#held?.resolve();
    this.#held = undefined;
  }

  /** Changes a key as the management interface would: at once, and with a new version. */
  async change(secret: string, changes: Partial<KeySnapshot>): Promise<void> {
    const before = this.#get(secret);
    const after = { ...before, ...changes, version: `${Number.parseInt(before.version, 10) + 1}.0` };
    await this.#versions.markStale([before.keyId]);
    this.snapshots.set(secret, after);
    await this.#versions.publishVersion([{ keyId: after.keyId, version: after.version }]);
  }

  /** Lets only pages of these origins use a key; null = any. */
  async allowOrigins(secret: string, entries: readonly string[] | null): Promise<void> {
    this.#allowedOrigins.set(secret, entries ?? []);
    const restrictions = entries && { addresses: null, origins: new OriginList(entries) };
    await this.change(secret, { restrictions });
  }

  async delete(secret: string): Promise<void> {
    const before = this.#get(secret);
    await this.#versions.markStale([before.keyId]);
    this.snapshots.delete(secret);
    this.#allowedOrigins.delete(secret);
    await this.#versions.retire([{ keyId: before.keyId }]);
  }

  #get(secret: string): KeySnapshot {
    const snapshot = this.snapshots.get(secret);
    if (snapshot === undefined) throw new Error('no such key');
    return snapshot;
  }

  #find(keyId: string): KeySnapshot | undefined {
    return [...this.snapshots.values()].find((snapshot) => snapshot.keyId === keyId);
  }

  async #read<Found>(find: () => Found): Promise<Found> {
    if (this.isDown) throw new Error('the record store is down');
    await this.#held?.promise;
    if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs));
    return find();
  }
}
