import { setTimeout as wait } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Browser } from 'playwright-core';
import type { RecordsDatabase } from '../../src/storage/postgres/records-database.ts';
import { startFleet } from '../support/fleet.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { launchChromium } from '../support/launch-chromium.ts';
import { openTestRecords } from '../support/records.ts';
import { scriptCommand } from '../support/script-command.ts';
import { findRedis, withPostgres } from '../support/test-stores.ts';
import { median } from './measure/statistics.ts';

scriptCommand(
  'bench:console',
  'How long pages of the console take with 20 000 keys, of which each was used in every hour of the last day and one key in every hour of 90 days, and with a year of days by endpoint. From the loading of the page, with its files cached, until its main table or chart is there; and what the page asked for until a second later. The console must be built: npm run build:console.',
).parse();

const KEYS = 20_000;
const READINGS = 5;
const SETTLED_MS = 1000;
const KEY = 'key_00000000000000000000000001';

const PAGES = [
  { name: 'Overview', path: '/', shown: 'figure canvas' },
  { name: 'Keys', path: '/keys', shown: 'tbody tr[aria-rowindex]' },
  { name: 'Keys, a search', path: '/keys?q=4711', shown: 'tbody tr[aria-rowindex]' },
  { name: 'Key', path: `/keys/${KEY}`, shown: 'figure canvas' },
  { name: 'Key, 90 days', path: `/keys/${KEY}?range=90d`, shown: 'figure canvas' },
  { name: 'Usage', path: '/usage', shown: 'figure canvas' },
  { name: 'Usage by key', path: '/usage?groupBy=key', shown: 'figure canvas' },
] as const;

await withPostgres(async () => {
  const redis = await findRedis();
  process.env.TEST_REDIS_URL = redis.url;
  const fleet = await startFleet(1);
  const browser = await launchChromium();
  const records = openTestRecords(fleet.databaseUrl, { chainSecrets: null });
  try {
    await fill(records.db);
    await measure(browser, fleet.replicas[0]?.url ?? '');
  } finally {
    await records.close();
    await browser.close();
    await fleet.stop();
    await redis.stop();
  }
});

/** In statements short enough for the limit on their time. */
async function fill(db: RecordsDatabase): Promise<void> {
  for (let from = 1; from <= KEYS; from += 4000) {
    await sql`
      INSERT INTO consumer_keys (id, name, created_at, updated_at, enabled, expires_at, lookup, sealed_secret, tags)
      SELECT 'key_' || lpad(number::text, 26, '0'), 'Customer ' || number * 7919 % ${KEYS}::bigint,
        now() - interval '5 minutes' * number, now(), number % 100 <> 0,
        CASE WHEN number % 3 = 0 THEN now() + interval '1 hour' * (number * 31 % 10000 - 200) END,
        sha256(number::text::bytea), sha256(number::text::bytea) || sha256(number::text::bytea), array['eu', 'paid']
      FROM generate_series(${from}::bigint, ${from + 3999}::bigint) AS number`.execute(db);
    await sql`
      INSERT INTO usage_hours (key_id, hour, plan_id, requests, successful, forwarded, forwarded_us, rate_limited, client_errors)
      SELECT 'key_' || lpad(number::text, 26, '0'), date_trunc('hour', now()) - interval '1 hour' * hour, 'default',
        10 + number % 90, 9, 9, 123456, number % 3, number % 3
      FROM generate_series(${from}::bigint, ${from + 3999}::bigint) AS number, generate_series(1, 24) AS hour`.execute(
      db,
    );
  }
  await sql`
    INSERT INTO usage_hours (key_id, hour, plan_id, requests, successful, forwarded, forwarded_us)
    SELECT ${KEY}, date_trunc('hour', now()) - interval '1 hour' * hour, 'default', 10, 9, 10, 123456
    FROM generate_series(25, 90 * 24) AS hour`.execute(db);
  for (let from = 1; from <= 1000; from += 250) {
    await sql`
      INSERT INTO usage_endpoint_days (key_id, day, plan_id, name, requests, successful, forwarded, forwarded_us)
      SELECT 'key_' || lpad(number::text, 26, '0'), current_date - day, 'default', '/v1/resource-' || number % 50, 10, 9, 10, 123456
      FROM generate_series(${from}::bigint, ${from + 249}::bigint) AS number, generate_series(1, 365) AS day`.execute(
      db,
    );
  }
  await sql`ANALYZE`.execute(db);
}

async function measure(chrome: Browser, url: string): Promise<void> {
  const page = await chrome.newPage({ viewport: { width: 1280, height: 900 } });
  let asked: string[] = [];
  page.on('request', (request) => {
    const path = request.url().slice(url.length);
    if (!path.startsWith('/tollgate/console')) asked.push(path.replace(/\?.*/, ''));
  });
  await page.goto(`${url}/tollgate/console/system`);
  await page.getByLabel('Token', { exact: true }).fill(ROOT_TOKEN);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  process.stdout.write(
    `${'page'.padEnd(16)} ${'first'.padStart(9)} ${'median'.padStart(9)}  requests of the first load\n`,
  );
  for (const { name, path, shown } of PAGES) {
    const times: number[] = [];
    let first: readonly string[] = [];
    for (let reading = 0; reading < READINGS; reading += 1) {
      asked = [];
      const startedAtMs = performance.now();
      await page.goto(`${url}/tollgate/console${path}`);
      await page.locator(shown).first().waitFor();
      times.push(performance.now() - startedAtMs);
      await wait(SETTLED_MS);
      if (reading === 0) first = asked;
    }
    process.stdout.write(
      `${name.padEnd(16)} ${figure(times[0])} ${figure(median(times))}  ${first.length}: ${[...new Set(first)].join(' ')}\n`,
    );
  }
}

function figure(ms = Number.NaN): string {
  return `${ms.toFixed(0).padStart(6)} ms`;
}
