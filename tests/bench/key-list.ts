import { sql } from 'kysely';
import {
  KEY_SORTS,
  KEY_STATUSES,
  type KeyFilter,
  type KeySelection,
  readKeyPage,
  SORT_ORDERS,
} from '../../src/keys/key-list.ts';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import { PostgresUsageHistory } from '../../src/storage/postgres/usage/postgres-usage-history.ts';
import { scriptCommand, wholeNumber } from '../support/script-command.ts';
import { median } from './measure/statistics.ts';
import { withRecords } from './setup/with-records.ts';

const KEYS: number = scriptCommand(
  'bench:key-list',
  'How long the list of keys takes with many keys, for each filter the slowest of all sorts and orders: the first page, and one from the middle. The figure is the median of a few readings.',
)
  .argument('[keys]', 'how many', wholeNumber(1), 100_000)
  .parse().processedArgs[0];
const PAGE = 100;
const READINGS = 5;
const DAY_MS = 86_400_000;
const NOW_MS = Date.now();

const FILTERS: Readonly<Record<string, KeyFilter>> = {
  none: {},
  'q=mobile (a fifth)': { text: 'mobile' },
  'q=customer 4711 (some)': { text: 'customer 4711' },
  'q=nowhere (none)': { text: 'nowhere' },
  'q=zq (none)': { text: 'zq' },
  'q=e (all)': { text: 'e' },
  ...Object.fromEntries(KEY_STATUSES.map((status) => [`status=${status}`, { statuses: [status] }])),
  'status=disabled,expired': { statuses: ['disabled', 'expired'] },
  'rateLimitId (0.25 %)': { planId: 'plan-5' },
  'tag=eu (a fifth)': { tags: ['eu'] },
  'tag=rare (0.1 %)': { tags: ['rare'] },
  externalId: { externalId: 'customer-1234' },
  'createdAfter (1 day)': { createdFromMs: NOW_MS - DAY_MS },
  'createdBefore (1 day after the first)': { createdBeforeMs: NOW_MS - (KEYS - 288) * 300_000 },
  'expiresBefore (30 days)': { expiresBeforeMs: NOW_MS + 30 * DAY_MS },
  'unusedSince (never used)': { unusedSinceMs: 0 },
  'unusedSince (10 days)': { unusedSinceMs: NOW_MS - 10 * DAY_MS },
  'q, status, unusedSince': {
    ...{ text: 'customer 47', statuses: ['active'] },
    unusedSinceMs: NOW_MS - 10 * DAY_MS,
  },
};

await withRecords(async (records) => {
  await fill(records);
  await measure(records);
});

/** Names, owners, plans, tags, expiries and last uses of many kinds, in statements short enough for the limit on their time. */
async function fill({ db }: Records): Promise<void> {
  await sql`INSERT INTO plans (id, description, "limit", period, created_at, updated_at)
    SELECT 'plan-' || number, '', 100, 'hour', now(), now() FROM generate_series(1, 100) AS number`.execute(
    db,
  );
  for (let from = 1; from <= KEYS; from += 2000) {
    const to = Math.min(KEYS, from + 1999);
    await sql`
      INSERT INTO consumer_keys (id, name, created_at, updated_at, enabled, expires_at, lookup, sealed_secret, plan_id, external_id, tags, metadata)
      SELECT 'key_' || lpad(upper(to_hex(number)), 12, '0') || substr(upper(md5(number::text)), 1, 14),
        'Customer ' || number * 7919 % ${KEYS}::bigint || ' ' || (array['mobile', 'web', 'batch', 'partner', 'internal'])[1 + number % 5],
        now() - interval '5 minutes' * (${KEYS}::bigint - number), now(), number % 1000 <> 0,
        CASE WHEN number % 3 = 0 THEN now() + interval '1 hour' * (number * 31 % 10000 - 200) END,
        sha256(number::text::bytea), sha256(number::text::bytea) || sha256(number::text::bytea),
        CASE WHEN number % 4 = 0 THEN 'plan-' || 1 + number % 100 END,
        CASE WHEN number % 2 = 0 THEN 'customer-' || number * 104729 % 50000 END,
        CASE WHEN number % 5 = 0 THEN array['eu', 'paid'] WHEN number % 777 = 0 THEN array['rare'] ELSE '{}' END,
        CASE WHEN number % 2 = 0 THEN jsonb_build_object('note', repeat(md5(number::text), 4)) END
      FROM generate_series(${from}::bigint, ${to}::bigint) AS number`.execute(db);
    await sql`
      UPDATE usage_totals SET requests = 10, successful = 9,
        last_used_at = now() - interval '1 second' * ((hashtext(key_id)::bigint + 2147483648) % 10000000)
      FROM (SELECT 'key_' || lpad(upper(to_hex(number)), 12, '0') || substr(upper(md5(number::text)), 1, 14) AS id
        FROM generate_series(${from}::bigint, ${to}::bigint) AS number) AS keys
      WHERE key_id = keys.id AND right(key_id, 1) NOT IN ('0', '1', '2')`.execute(db);
  }
  for (const table of ['consumer_keys', 'usage_totals'])
    await sql`VACUUM ANALYZE ${sql.table(table)}`.execute(db);
}

async function measure({ keyList, keys, db }: Records): Promise<void> {
  process.stdout.write(
    `${'filter'.padEnd(40)} ${'found'.padStart(7)} ${'page'.padStart(9)} ${'count'.padStart(9)}\n`,
  );
  for (const [name, filter] of Object.entries(FILTERS)) {
    const pages: { readonly ms: number; readonly of: string }[] = [];
    for (const sort of KEY_SORTS) {
      for (const order of SORT_ORDERS) {
        const selection: KeySelection = { filter, sort, order, limit: PAGE };
        const first = await readKeyPage(keyList, selection, NOW_MS);
        pages.push({ ms: await timeOf(() => keyList.list(selection, NOW_MS)), of: `${sort} ${order}` });
        const after = first.next && (await middleOf(keyList, selection));
        if (after === undefined) continue;
        const ms = await timeOf(() => keyList.list({ ...selection, after }, NOW_MS));
        pages.push({ ms, of: `${sort} ${order}, from the middle` });
      }
    }
    const slowest = pages.toSorted((a, b) => b.ms - a.ms)[0];
    const found = await keyList.count(filter, NOW_MS);
    const counted = await timeOf(() => keyList.count(filter, NOW_MS));
    process.stdout.write(
      `${name.padEnd(40)} ${String(found).padStart(7)} ${figure(slowest?.ms)} ${figure(counted)}  ${slowest?.of}\n`,
    );
  }
  const ids = (await keyList.list({ filter: {}, sort: 'createdAt', order: 'desc', limit: 1000 }, NOW_MS)).map(
    ({ id }) => id,
  );
  const some = ids.slice(0, 200);
  const all: KeySelection = { filter: {}, sort: 'createdAt', order: 'desc', limit: 1000 };
  const history = new PostgresUsageHistory(db);
  process.stdout.write(
    `${'a page of 1000'.padEnd(48)} ${figure(await timeOf(() => keyList.list(all, NOW_MS)))}\n`,
  );
  process.stdout.write(
    `${'totals of 200 keys'.padEnd(48)} ${figure(await timeOf(() => history.readTotals(some)))}\n`,
  );
  process.stdout.write(
    `${'snapshots of 200 keys'.padEnd(48)} ${figure(await timeOf(() => keys.findSnapshotsOrErrors(some)))}\n`,
  );
}

/** A few pages on. */
async function middleOf(
  keyList: Records['keyList'],
  selection: KeySelection,
): Promise<KeySelection['after']> {
  const page = await readKeyPage(keyList, { ...selection, limit: 5000 }, NOW_MS);
  const last = page.keys[Math.floor(page.keys.length / 2)];
  if (last === undefined) return undefined;
  return (await readKeyPage(oneKey(last), { ...selection, limit: 1 }, NOW_MS)).next;
}

function oneKey(
  key: Awaited<ReturnType<Records['keyList']['list']>>[number],
): Pick<Records['keyList'], 'list'> {
  return { list: async () => [key, key] };
}

async function timeOf(read: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let reading = 0; reading < READINGS; reading += 1) {
    const startedAtMs = performance.now();
    await read();
    times.push(performance.now() - startedAtMs);
  }
  return median(times);
}

function figure(ms = Number.NaN): string {
  return `${ms.toFixed(1).padStart(6)} ms`;
}
