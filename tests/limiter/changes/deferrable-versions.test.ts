import { beforeEach, describe, expect, it } from '@jest/globals';
import pino from 'pino';
import { StoreUnavailable } from '../../../src/errors.ts';
import { DeferrableVersions } from '../../../src/limiter/changes/deferrable-versions.ts';
import type { SharedVersions } from '../../../src/limiter/record-versions.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** Shared versions in parts, each named by the first letter of its keys. A call that concerns a part in `away` fails as a whole. */
class PartedVersions implements SharedVersions {
  readonly away = new Set<string>();
  readonly called: string[][] = [];
  readonly published: string[] = [];

  async markStale(keyIds: readonly string[]): Promise<void> {
    this.#call(keyIds);
  }

  async publishVersion(versions: readonly { readonly keyId: string }[]): Promise<void> {
    const keyIds = versions.map(({ keyId }) => keyId);
    this.#call(keyIds);
    this.published.push(...keyIds);
  }

  async retire(keys: readonly { readonly keyId: string }[]): Promise<void> {
    this.#call(keys.map(({ keyId }) => keyId));
  }

  async withdraw({ keyId }: { readonly keyId: string }): Promise<void> {
    this.#call([keyId]);
  }

  #call(keyIds: readonly string[]): void {
    this.called.push([...keyIds]);
    if (keyIds.some((keyId) => this.away.has(keyId.charAt(0))))
      throw new StoreUnavailable('redis', new Error('away'));
  }
}

describe('versions of which a part does not respond', () => {
  let shared: PartedVersions;
  let clock: ManualClock;
  let versions: DeferrableVersions;
  beforeEach(() => {
    shared = new PartedVersions();
    clock = new ManualClock(0);
    const log = pino({ level: 'silent' });
    const partOf = (keyId: string) => keyId.charCodeAt(0);
    versions = new DeferrableVersions({ shared, clock, log, partOf, onPublished: () => {} });
  });

  const publish = (...keyIds: string[]) =>
    versions.publishVersion(keyIds.map((keyId) => ({ keyId, version: '2.0' })));

  it('are published for the keys of all other parts, with the same change and later ones', async () => {
    shared.away.add('b');
    expect(await publish('a1', 'b1', 'c1', 'a2')).toBe(false);
    expect(await publish('a3')).toBe(true);
    expect(await versions.retire([{ keyId: 'c1' }])).toBe(true);
    expect(shared.published.toSorted()).toEqual(['a1', 'a2', 'a3', 'c1']);
  });

  it('are not tried again there for two seconds, or until they are there again', async () => {
    shared.away.add('b');
    await publish('a1', 'b1');
    shared.away.clear();
    shared.called.length = 0;
    expect(await publish('b2')).toBe(false);
    expect(shared.called).toEqual([]);
    clock.advance(2000);
    expect(await publish('b2')).toBe(true);
    shared.away.add('b');
    await publish('b3');
    shared.away.clear();
    versions.reset();
    expect(await publish('b3')).toBe(true);
  });

  it('let a change wait once when no part responds, however many keys it has', async () => {
    for (let part = 0; part < 2000; part += 1) shared.away.add(String.fromCharCode(0x4e00 + part));
    const keyIds = [...shared.away].map((part) => `${part}1`);
    await versions.markStale(keyIds);
    expect(shared.called).toHaveLength(500);
  });

  it('take all keys of one part with one call', async () => {
    expect(await publish('a1', 'a2', 'a3')).toBe(true);
    expect(shared.called).toEqual([['a1', 'a2', 'a3']]);
  });
});
