import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { RateLimiter } from '../../src/limiter/rate-limiter.ts';
import {
  decide,
  LIMITER_STORES,
  type LimiterStore,
  newKeyId,
  peek,
  quota,
  subject,
} from '../support/limiter-stores.ts';
import { until } from '../support/until.ts';

const OLD = '1.0';
const NEW = '2.0';

describe.each(Object.entries(LIMITER_STORES))('record versions kept %s', (_name, open) => {
  let store: LimiterStore;
  let limiter: RateLimiter;

  beforeAll(async () => {
    store = await open();
    const [first] = store.limiters;
    if (first === undefined) throw new Error('no limiter');
    limiter = first;
  });
  afterAll(() => store.close());

  async function kindOf(keyId: string, version: string, fresh: boolean): Promise<string> {
    return (await decide(limiter, subject(keyId, { version, fresh, quota: quota(1000, 'hour') }))).kind;
  }

  /** Which of the two versions a copy that was not read for the request may have. */
  async function valid(keyId: string): Promise<string[]> {
    const versions: string[] = [];
    for (const version of [OLD, NEW]) {
      if ((await kindOf(keyId, version, false)) === 'allowed') versions.push(version);
    }
    return versions;
  }

  async function installed(): Promise<string> {
    const keyId = newKeyId();
    await kindOf(keyId, OLD, true);
    return keyId;
  }

  const states: readonly {
    readonly state: string;
    readonly make: () => Promise<string>;
    readonly validBefore: readonly string[];
    readonly freshNew?: 'stale';
    readonly validAfterFreshNew: readonly string[];
  }[] = [
    {
      state: 'nothing is known',
      make: async () => newKeyId(),
      validBefore: [],
      validAfterFreshNew: [NEW],
    },
    { state: 'the old version is shared', make: installed, validBefore: [OLD], validAfterFreshNew: [NEW] },
    {
      state: 'a change is announced',
      make: async () => {
        const keyId = await installed();
        await store.versions.markStale([keyId]);
        return keyId;
      },
      validBefore: [],
      validAfterFreshNew: [],
    },
    {
      state: 'a change has settled',
      make: async () => {
        const keyId = await installed();
        await store.versions.markStale([keyId]);
        await store.versions.publishVersion([{ keyId, version: NEW }]);
        return keyId;
      },
      validBefore: [NEW],
      validAfterFreshNew: [NEW],
    },
    {
      state: 'what was known has expired',
      make: async () => {
        const keyId = await installed();
        await store.expireVersion(keyId);
        return keyId;
      },
      validBefore: [],
      validAfterFreshNew: [NEW],
    },
    {
      state: 'the key is retired',
      make: async () => {
        const keyId = await installed();
        await store.versions.retire([{ keyId }]);
        return keyId;
      },
      validBefore: [],
      freshNew: 'stale',
      validAfterFreshNew: [],
    },
  ];

  it.each(states)(
    'decides on a fresh snapshot when $state, and installs it unless a newer is known',
    async ({ make, validBefore, freshNew = 'allowed', validAfterFreshNew }) => {
      const keyId = await make();
      expect(await valid(keyId)).toEqual(validBefore);
      expect(await kindOf(keyId, NEW, true)).toBe(freshNew);
      expect(await valid(keyId)).toEqual(validAfterFreshNew);
    },
  );

  it('counts nothing for a stale copy', async () => {
    const keyId = await installed();
    await store.versions.markStale([keyId]);
    await kindOf(keyId, OLD, false);
    expect(await peek(store.counters, keyId, quota(1000, 'hour'))).toMatchObject({ used: 1 });
  });

  it('keeps the window over a change', async () => {
    const keyId = await installed();
    await store.versions.markStale([keyId]);
    await store.versions.publishVersion([{ keyId, version: NEW }]);
    expect(await peek(store.counters, keyId, quota(1000, 'hour'))).toMatchObject({ used: 1 });
  });

  it('trusts no copy after changes that overlapped, whichever settles last', async () => {
    const keyId = await installed();
    await store.versions.markStale([keyId]);
    await store.versions.markStale([keyId]);
    await store.versions.publishVersion([{ keyId, version: '3.0' }]);
    await store.versions.publishVersion([{ keyId, version: NEW }]);
    expect(await valid(keyId)).toEqual([]);
    expect(await kindOf(keyId, '3.0', false)).toBe('stale');
    expect(await kindOf(keyId, '3.0', true)).toBe('allowed');
  });

  it('trusts no snapshot when a change ends after its mark expired and another came', async () => {
    const keyId = await installed();
    await store.versions.markStale([keyId]);
    await store.expireVersion(keyId);
    await kindOf(keyId, '3.0', true);
    await store.versions.publishVersion([{ keyId, version: NEW }]);
    expect(await valid(keyId)).toEqual([]);
    expect(await kindOf(keyId, '3.0', false)).toBe('stale');
  });

  it('settles where nothing is known, and settles twice without harm', async () => {
    const keyId = newKeyId();
    await store.versions.publishVersion([{ keyId, version: NEW }]);
    await store.versions.publishVersion([{ keyId, version: NEW }]);
    expect(await valid(keyId)).toEqual([NEW]);
  });

  it('keeps a retired key retired through changes that were under way', async () => {
    const keyId = await installed();
    await store.versions.markStale([keyId]);
    await store.versions.retire([{ keyId }]);
    await store.versions.markStale([keyId]);
    await store.versions.publishVersion([{ keyId, version: NEW }]);
    expect(await valid(keyId)).toEqual([]);
  });

  it('opens no window for a retired key, however fresh the copy is', async () => {
    const keyId = newKeyId();
    await store.versions.retire([{ keyId }]);
    expect(await kindOf(keyId, OLD, true)).toBe('stale');
    expect(await peek(store.counters, keyId, quota(1000, 'hour'))).toMatchObject({
      used: 0,
      resetAtMs: null,
    });
  });

  it('withdraws an outdated version, so that the record is read', async () => {
    const keyId = await installed();
    await store.versions.withdraw({ keyId, version: OLD });
    expect(await kindOf(keyId, OLD, false)).toBe('stale');
    expect(await kindOf(keyId, NEW, true)).toBe('allowed');
    expect(await valid(keyId)).toEqual([NEW]);
  });

  it.each([
    ['another version', NEW, async () => {}],
    ['a mark', OLD, (keyId: string) => store.versions.markStale([keyId])],
    ['a tombstone', OLD, (keyId: string) => store.versions.retire([{ keyId }])],
  ])('withdraws nothing where %s has taken its place', async (_what, outdated, change) => {
    const keyId = await installed();
    await change(keyId);
    const before = await valid(keyId);
    await store.versions.withdraw({ keyId, version: outdated });
    expect(await valid(keyId)).toEqual(before);
    expect(await kindOf(keyId, NEW, true)).toBe(_what === 'a tombstone' ? 'stale' : 'allowed');
  });

  it('changes thousands of keys in one go', async () => {
    const keyIds = Array.from({ length: 1201 }, newKeyId);
    await store.versions.markStale(keyIds);
    await store.versions.publishVersion(keyIds.map((keyId) => ({ keyId, version: NEW })));
    const kinds = await Promise.all(keyIds.map((keyId) => kindOf(keyId, NEW, false)));
    expect(new Set(kinds)).toEqual(new Set(['allowed']));
  });

  it('has nothing to do for no keys', async () => {
    await store.versions.markStale([]);
    await store.versions.publishVersion([]);
  });

  it('tells every replica which keys settled or were retired', async () => {
    const heard = store.feeds.map((feed) => {
      const keyIds = new Set<string>();
      feed.onChange((keyId) => keyIds.add(keyId));
      return keyIds;
    });
    const settled = newKeyId();
    const retired = newKeyId();
    await store.versions.publishVersion([{ keyId: settled, version: NEW }]);
    await store.versions.retire([{ keyId: retired }]);
    await until(() => heard.every((keyIds) => keyIds.has(settled) && keyIds.has(retired)));
  });
});
