import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { sql } from 'kysely';
import type { ConsumerKey } from '../../src/keys/consumer-key.ts';
import {
  EXPIRING_WITHIN_MS,
  KEY_SORTS,
  KEY_STATUSES,
  type KeyFilter,
  type KeyPosition,
  type KeySelection,
  type KeyStatus,
  readKeyPage,
  SORT_ORDERS,
} from '../../src/keys/key-list.ts';
import { PostgresKeyList } from '../../src/storage/postgres/keys/postgres-key-list.ts';
import { deleteKey, updateKey } from '../support/one-key.ts';
import { RECORD_STORES, type TestRecords } from '../support/records.ts';
import { sampleChange, sampleKey, samplePlan, storeKey } from '../support/sample-records.ts';

const NOW_MS = Date.UTC(2026, 5, 1);
const DAY_MS = 86_400_000;
/** Few of each, so that keys are alike in all of them. */
const NAMES = ['Alpha', 'alpha', 'ÄPFEL 100%', 'äpfel_2', 'beta\\b', '🗝 Beta'];
const OWNERS = [null, 'acme', 'ACME-2'];
const CREATED = [0, 1, DAY_MS].map((ms) => NOW_MS - 10 * DAY_MS + ms);
const EXPIRIES = [null, NOW_MS - DAY_MS, NOW_MS, NOW_MS + DAY_MS, NOW_MS + EXPIRING_WITHIN_MS + 1];
const USES = [null, NOW_MS - 5 * DAY_MS, NOW_MS - DAY_MS];
const TAGS = [[], ['a'], ['a', 'b'], ['c']];
const INSTANTS = [...CREATED, ...EXPIRIES, ...USES].filter((ms) => ms !== null);
const KEYS = 90;

describe.each(RECORD_STORES)('the list of keys in %s', (_name, create) => {
  let store: TestRecords;
  let keys: readonly ConsumerKey[];
  const planIds: (string | null)[] = [null];

  beforeAll(async () => {
    store = await create();
    const plan = samplePlan();
    await store.records.plans.insert(plan, sampleChange());
    planIds.push(plan.id);
    for (let number = 0; number < KEYS; number += 1) {
      const of = <Value>(values: readonly Value[], step: number) =>
        values[Math.floor(number / step) % values.length] as Value;
      await store.records.keys.insert(
        sampleKey({
          name: of(NAMES, 1),
          externalId: of(OWNERS, 2),
          createdAtMs: of(CREATED, 3),
          updatedAtMs: of(CREATED, 3),
          enabled: number % 7 !== 0,
          expiresAtMs: of(EXPIRIES, 5),
          tags: of(TAGS, 4),
          planId: of(planIds, 6),
          secretHint: number % 10 === 0 ? null : `tg_H1n${number % 3}…zZzZ`,
        }),
        sampleChange(),
      );
    }
    const ids = (await page({})).map(({ id }) => id).toSorted();
    for (const [number, id] of ids.entries()) {
      const usedAtMs = USES[number % USES.length];
      if (usedAtMs === null || usedAtMs === undefined) continue;
      await sql`UPDATE usage_totals SET last_used_at = ${new Date(usedAtMs)} WHERE key_id = ${id}`.execute(
        store.records.db,
      );
    }
    keys = await page({});
    expect(keys).toHaveLength(KEYS);
  });
  afterAll(() => store.remove());

  function page(selection: Partial<KeySelection>): Promise<readonly ConsumerKey[]> {
    const whole = { filter: {}, sort: 'createdAt', order: 'desc', limit: 1000, ...selection } as const;
    return store.records.keyList.list(whole, NOW_MS);
  }

  const filters: fc.Arbitrary<KeyFilter> = fc.record(
    {
      text: fc.constantFrom(
        'alpha',
        'ÄPFEL',
        'äp',
        '%',
        '_',
        '\\',
        '0%',
        'acme',
        'KEY_0',
        'h1N2…z',
        'é',
        '🗝',
        '000',
      ),
      statuses: fc.subarray([...KEY_STATUSES], { minLength: 1 }),
      planId: fc.constantFrom('none', 'bound').map((name) => (name === 'bound' ? String(planIds[1]) : name)),
      tags: fc.constantFrom([], ['a'], ['b', 'a'], ['a', 'c']),
      externalId: fc.constantFrom('acme', 'ACME', 'ACME-2'),
      createdFromMs: fc.constantFrom(...INSTANTS),
      createdBeforeMs: fc.constantFrom(...INSTANTS),
      expiresBeforeMs: fc.constantFrom(...INSTANTS),
      unusedSinceMs: fc.constantFrom(...INSTANTS),
    },
    { requiredKeys: [] },
  );

  it('has and counts exactly the keys that meet the filter, in order, each once', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof({ arbitrary: fc.constant({}), weight: 1 }, { arbitrary: filters, weight: 5 }),
        fc.constantFrom(...KEY_SORTS),
        fc.constantFrom(...SORT_ORDERS),
        fc.constantFrom(7, 40, 1000),
        fc.constantFrom(5, 2500),
        async (filter, sort, order, limit, sortedAtMost) => {
          const list = new PostgresKeyList(store.records.db, sortedAtMost);
          const expected = keys.filter((key) => meets(key, filter)).toSorted(inOrder(sort, order));
          const listed: string[] = [];
          let after: KeyPosition | undefined;
          do {
            const selection = { filter, sort, order, limit, ...(after && { after }) };
            const read = await readKeyPage(list, selection, NOW_MS);
            listed.push(...read.keys.map(({ id }) => id));
            after = read.next;
          } while (after !== undefined);
          expect(listed).toEqual(expected.map(({ id }) => id));
          expect(await list.count(filter, NOW_MS)).toBe(expected.length);
        },
      ),
      { numRuns: 80 },
    );
  });

  it('goes on after a key that was renamed or deleted, and before new keys', async () => {
    const made = ['m1', 'm2', 'm3', 'm4'].map((name) =>
      sampleKey({ name, externalId: 'moving', createdAtMs: NOW_MS }),
    );
    for (const key of made) await store.records.keys.insert(key, sampleChange());
    const selection = { filter: { externalId: 'moving' }, sort: 'name', order: 'asc', limit: 2 } as const;
    const first = await readKeyPage(store.records.keyList, selection, NOW_MS);
    await deleteKey(store.records.keys, String(made[0]?.id), sampleChange());
    await updateKey(store.records.keys, String(made[1]?.id), { name: 'a1' }, sampleChange());
    await store.records.keys.insert(sampleKey({ name: 'm2.5', externalId: 'moving' }), sampleChange());
    const rest = await readKeyPage(
      store.records.keyList,
      { ...selection, limit: 9, after: first.next as KeyPosition },
      NOW_MS,
    );
    expect([...first.keys, ...rest.keys].map(({ name }) => name)).toEqual(['m1', 'm2', 'm2.5', 'm3', 'm4']);
    for (const { id } of [...made.slice(1), ...rest.keys])
      await deleteKey(store.records.keys, id, sampleChange());
  });

  it('finds a key by two characters of what it is called now, and no longer by others', async () => {
    const found = async (text: string) => (await page({ filter: { text } })).map(({ id }) => id);
    const key = await storeKey(store.records, { name: 'q~ first', externalId: 'q~ owner' });
    expect(await found('Q~')).toEqual([key.id]);
    await updateKey(store.records.keys, key.id, { name: 'w~ second' }, sampleChange());
    expect(await found('q~')).toEqual([key.id]);
    await updateKey(store.records.keys, key.id, { externalId: null }, sampleChange());
    expect([await found('q~'), await found('w~')]).toEqual([[], [key.id]]);
    await deleteKey(store.records.keys, key.id, sampleChange());
    expect(await found('w~')).toEqual([]);
  });

  it('finds keys that the version before has made, which knows nothing of it', async () => {
    const { lookup } = sampleKey();
    await sql`
      INSERT INTO consumer_keys (id, name, created_at, updated_at, lookup)
      VALUES ('key_09999999999999999999999999', 'of before', now(), now(), ${lookup})`.execute(
      store.records.db,
    );
    for (const text of ['OF BEFORE', 'F ']) {
      const selection = { filter: { text }, sort: 'lastUsedAt', order: 'asc' } as const;
      expect(await page(selection)).toMatchObject([
        { name: 'of before', secretHint: null, lastUsedAtMs: null },
      ]);
    }
    await deleteKey(store.records.keys, 'key_09999999999999999999999999', sampleChange());
  });
});

function meets(key: ConsumerKey, filter: KeyFilter): boolean {
  const { text, statuses, planId, tags = [], externalId } = filter;
  const { createdFromMs, createdBeforeMs, expiresBeforeMs, unusedSinceMs } = filter;
  const { name, id, secretHint } = key;
  const texts = [name, key.externalId ?? '', id, secretHint ?? ''].map((each) => each.toLowerCase());
  return [
    text === undefined || texts.some((each) => each.includes(text.toLowerCase())),
    statuses === undefined || statuses.some((status) => isIn(key, status)),
    planId === undefined || key.planId === planId,
    tags.every((tag) => key.tags.includes(tag)),
    externalId === undefined || key.externalId === externalId,
    createdFromMs === undefined || key.createdAtMs >= createdFromMs,
    createdBeforeMs === undefined || key.createdAtMs < createdBeforeMs,
    expiresBeforeMs === undefined || (key.expiresAtMs ?? Number.POSITIVE_INFINITY) < expiresBeforeMs,
    unusedSinceMs === undefined || (key.lastUsedAtMs ?? Number.NEGATIVE_INFINITY) < unusedSinceMs,
  ].every(Boolean);
}

function isIn({ enabled, expiresAtMs }: ConsumerKey, status: KeyStatus): boolean {
  const expiresMs = expiresAtMs ?? Number.POSITIVE_INFINITY;
  const isActive = enabled && expiresMs > NOW_MS;
  switch (status) {
    case 'active':
      return isActive;
    case 'disabled':
      return !enabled;
    case 'expired':
      return expiresMs <= NOW_MS;
    case 'expiring':
      return isActive && expiresMs <= NOW_MS + EXPIRING_WITHIN_MS;
  }
}

function inOrder(
  sort: KeySelection['sort'],
  order: KeySelection['order'],
): (one: ConsumerKey, other: ConsumerKey) => number {
  const sortedValue = (key: ConsumerKey): string | number => {
    if (sort === 'name') return Buffer.from(key.name.toLowerCase()).toString('hex');
    if (sort === 'createdAt') return key.createdAtMs;
    if (sort === 'lastUsedAt') return key.lastUsedAtMs ?? Number.NEGATIVE_INFINITY;
    return key.expiresAtMs ?? Number.POSITIVE_INFINITY;
  };
  const sign = order === 'asc' ? 1 : -1;
  return (one, other) => {
    const [a, b] = [sortedValue(one), sortedValue(other)];
    return sign * (a < b || (a === b && one.id < other.id) ? -1 : 1);
  };
}
