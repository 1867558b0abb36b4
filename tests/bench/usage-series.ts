import { sql } from 'kysely';
import { systemClock } from '../../src/platform/clock.ts';
import type { RecordsDatabase } from '../../src/storage/postgres/records-database.ts';
import { PostgresSeriesStore } from '../../src/storage/postgres/usage/postgres-series-store.ts';
import type { Grouping } from '../../src/usage/series/series-store.ts';
import type { Interval } from '../../src/usage/series/time-buckets.ts';
import { TimeZone } from '../../src/usage/series/time-zone.ts';
import { type SeriesRequest, UsageSeries } from '../../src/usage/series/usage-series.ts';
import { scriptCommand } from '../support/script-command.ts';
import { median } from './measure/statistics.ts';
import { withRecords } from './setup/with-records.ts';

scriptCommand(
  'bench:usage-series',
  'How long usage over time takes to read with 100 000 keys, of which each was used in every hour of the last day and a half: 3.6 million rows of hours, the worst that so many keys can do. One of them was used in every hour of a month, with 50 endpoints a day.',
).parse();

const KEYS = 100_000;
const DAYS = 30;
const ENDPOINTS = 50;
const READINGS = 9;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const endMs = Math.floor(Date.now() / DAY_MS) * DAY_MS;
const month = { fromMs: endMs - DAYS * DAY_MS, toMs: endMs };
const day = { fromMs: endMs - DAY_MS, toMs: endMs };
const keyId = (number: number) => `key_${String(number).padStart(26, '0')}`;

await withRecords(async ({ db }) => {
  await fill(db);
  await measure(db);
});

/** In the order in which the gateway writes: hour by hour, the keys in any order. An hour at a time, within the limit on a statement. */
async function fill(db: RecordsDatabase): Promise<void> {
  for (let hour = -12; hour < 24; hour += 1) {
    const at = new Date(day.fromMs + hour * HOUR_MS).toISOString();
    for (let from = 0; from < KEYS; from += 20_000) {
      await sql`
        INSERT INTO usage_hours (key_id, hour, plan_id, requests, successful, forwarded, forwarded_us, client_errors)
        SELECT 'key_' || lpad((number * 7919 % ${KEYS}::bigint)::text, 26, '0'), ${at}::timestamptz,
          CASE number % 3 WHEN 0 THEN 'gold' ELSE 'default' END, 10 + number % 7, 9, 10, 123456, 1
        FROM generate_series(${from}::bigint, ${from + 19_999}::bigint) AS number`.execute(db);
    }
    // As autovacuum does for full ranges of pages within a minute or so.
    await sql`SELECT brin_summarize_new_values('usage_hours_default_hour_idx')`.execute(db);
  }
  const [from, to, filled] = [month.fromMs, day.fromMs, day.fromMs - DAY_MS / 2].map((ms) =>
    new Date(ms).toISOString(),
  );
  await sql`
    INSERT INTO usage_hours (key_id, hour, plan_id, requests, successful, forwarded, forwarded_us)
    SELECT ${keyId(1)}, hour, 'default', 10, 9, 10, 123456
    FROM generate_series(${from}::timestamptz, ${filled}::timestamptz - interval '1 hour', '1 hour') AS hour`.execute(
    db,
  );
  await sql`
    INSERT INTO usage_endpoint_days (key_id, day, plan_id, name, requests, successful, forwarded, forwarded_us)
    SELECT ${keyId(1)}, day::date, 'default', '/v1/resource-' || number, 10, 9, 10, 123456
    FROM generate_series(${from}::timestamptz, ${to}::timestamptz, '1 day') AS day,
      generate_series(1, ${ENDPOINTS}::int) AS number`.execute(db);
  await sql`ANALYZE usage_hours, usage_key_days, usage_endpoint_days`.execute(db);
}

async function measure(db: RecordsDatabase): Promise<void> {
  const report = reporter(db);
  const one = { keyId: keyId(1) };
  await report('one key, 30 days, by hour', { span: month, interval: 'hour', filter: one });
  await report('one key, 30 days, by day in Berlin', {
    ...{ span: month, interval: 'day', filter: one, zone: new TimeZone('Europe/Berlin') },
  });
  await report('one key, 30 days, by day and endpoint', {
    ...{ span: month, interval: 'day', filter: one, groupBy: ['endpoint'] },
  });
  await report('all keys, a day, in all', { span: day, interval: 'total' });
  await report('all keys, a day, by hour', { span: day, interval: 'hour' });
  await report('all keys, a day, by hour and plan', { span: day, interval: 'hour', groupBy: ['rateLimit'] });
  await report('all keys, a day, the ten busiest', {
    span: day,
    interval: 'total',
    groupBy: ['key'],
    top: 10,
  });
  // The last one has as many hours beside whole quarters of days as there can be.
  for (const hour of [12, 15]) {
    await report(`all keys, 24 hours from ${hour}:00, the ten busiest`, {
      span: { fromMs: day.fromMs - (24 - hour) * HOUR_MS, toMs: day.fromMs + hour * HOUR_MS },
      interval: 'total',
      groupBy: ['key'],
      top: 10,
    });
  }
}

interface Asked {
  readonly span: SeriesRequest['span'];
  readonly interval: Interval;
  readonly filter?: SeriesRequest['filter'];
  readonly zone?: TimeZone;
  readonly groupBy?: readonly Grouping[];
  readonly top?: number;
}

/** Writes a line of how long a series takes to read. */
function reporter(db: RecordsDatabase): (name: string, asked: Asked) => Promise<void> {
  const series = new UsageSeries({
    store: new PostgresSeriesStore(db),
    clock: systemClock,
    retentionDays: 90,
    dailyRetentionDays: 400,
    pending: { read: async () => [], oldestAtMs: async () => undefined, knownOldestAtMs: () => undefined },
    outages: () => [],
  });
  return async (name, asked) => {
    const request = { zone: new TimeZone('UTC'), groupBy: [], filter: {}, top: undefined, ...asked };
    const times: number[] = [];
    let rows = 0;
    for (let reading = 0; reading < READINGS; reading += 1) {
      const startedAtMs = performance.now();
      rows = (await series.read(request, 10_000)).rows.length;
      times.push(performance.now() - startedAtMs);
    }
    const [least, middle] = [Math.min(...times), median(times)].map((ms) => ms.toFixed(1).padStart(9));
    process.stdout.write(
      `${name.padEnd(46)} ${String(rows).padStart(6)} rows ${least} ms least ${middle} ms median\n`,
    );
  };
}
