import { sql } from 'kysely';
import { systemRandom } from '../../../src/platform/random.ts';
import { PostgresUsageHistory } from '../../../src/storage/postgres/usage/postgres-usage-history.ts';
import { RedisLiveUsage } from '../../../src/storage/redis/usage/redis-live-usage.ts';
import { LiveUsageWriter } from '../../../src/usage/live-usage-writer.ts';
import { UsageBuffer } from '../../../src/usage/usage-buffer.ts';
import { UsageFlusher } from '../../../src/usage/usage-flusher.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';
import { completed } from '../../usage/support/sample-usage.ts';
import { silent } from '../../usage/support/usage-stores.ts';
import type { WeekStores } from './week-stores.ts';
import { type WeekRequest, WeekTraffic } from './week-traffic.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A Thursday; the month ends on the Sunday. */
export const WEEK_BEGINS_MS = Date.UTC(2025, 0, 28);
const HOURS = 7 * 24;
const REPLICAS = 3;
/** Of hours: January ends on the Sunday and is too old on Wednesday, within the week. */
export const KEPT_DAYS = 3;
const DAILY_KEPT_DAYS = 400;
/** Hours of the week. */
const REDIS_FAILS_OVER = 37;
const POSTGRES_IS_AWAY = 85;
const UPGRADE_BEGINS = 130;

export interface WeekOptions {
  readonly seed: number;
  readonly keyIds: readonly string[];
  readonly requestsPerHour: number;
  /** Hours between two moves to Postgres. */
  readonly moveEvery: number;
  readonly onDay?: (day: number) => void;
}

/** A replica's part of usage. */
interface Replica {
  readonly buffer: UsageBuffer;
  readonly writer: LiveUsageWriter;
  readonly flusher: UsageFlusher;
}

/**
 * Plays a week in simulated time with three replicas and real stores, and resolves with the traffic that was sent. `beforeRetention` runs
 * before the first month is too old.
 */
export async function playWeek(
  stores: WeekStores,
  options: WeekOptions,
  beforeRetention: (traffic: WeekTraffic) => Promise<void>,
): Promise<WeekTraffic> {
  const clock = new ManualClock(WEEK_BEGINS_MS);
  const live = new RedisLiveUsage(stores.redis, clock);
  const history = new PostgresUsageHistory(stores.records.db);
  const startReplica = (): Replica => {
    const buffer = new UsageBuffer({ clock, mask: (name) => name });
    const shared = { live, history, clock, log: silent };
    const writer = new LiveUsageWriter({ ...shared, buffer, random: systemRandom });
    return { buffer, writer, flusher: new UsageFlusher({ ...shared, intervalMs: 0 }) };
  };
  const replicas = Array.from({ length: REPLICAS }, startReplica);
  const traffic = new WeekTraffic(options);
  const prune = () => history.prune(retentionAt(clock.nowMs()));
  await prune();
  for (let hour = 0; hour < HOURS; hour += 1) {
    if (hour % 24 === 0) options.onDay?.(hour / 24);
    if (hour === POSTGRES_IS_AWAY) stores.losePostgres();
    recordAll(traffic.ofHour(WEEK_BEGINS_MS + hour * HOUR_MS), replicas, clock);
    if (hour === REDIS_FAILS_OVER) await stores.failOverRedis(async () => void (await writeAll(replicas)));
    await writeAll(replicas);
    if (hour === POSTGRES_IS_AWAY) {
      if (await moveAll(replicas)) throw new Error('usage was moved without Postgres');
      await stores.returnPostgres();
    }
    const upgraded = hour - UPGRADE_BEGINS;
    if (upgraded >= 0 && upgraded < REPLICAS) await replace(replicas, upgraded, startReplica);
    clock.advance(WEEK_BEGINS_MS + (hour + 1) * HOUR_MS - clock.nowMs());
    if ((hour + 1) % options.moveEvery === 0) await until(() => moveAll(replicas));
    if (hour + 1 === JANUARY_IS_TOO_OLD) await beforeRetention(traffic);
    if ((hour + 1) % 24 === 0) await prune();
  }
  await until(async () => (await writeAll(replicas)) && (await moveAll(replicas)));
  return traffic;
}

/** The end of January and the days that hours are kept. */
const JANUARY_IS_TOO_OLD = (4 + KEPT_DAYS) * 24;

function retentionAt(nowMs: number) {
  return { nowMs, hoursKeptMs: KEPT_DAYS * DAY_MS, daysKeptMs: DAILY_KEPT_DAYS * DAY_MS };
}

function recordAll(requests: readonly WeekRequest[], replicas: readonly Replica[], clock: ManualClock): void {
  for (const [index, { atMs, keyId, endpoint, customerId, status }] of requests.entries()) {
    clock.advance(atMs - clock.nowMs());
    replicas[index % replicas.length]?.buffer.record(
      completed({
        ...{ keyId, endpoint, customerId, status, planId: 'default' },
        successful: status === 200,
        rateLimited: status === 429,
        responseTimeMs: status === 429 ? null : 12.5,
        bytesOut: 932,
      }),
    );
  }
}

async function writeAll(replicas: readonly Replica[]): Promise<boolean> {
  const settled = await Promise.all(replicas.map(({ writer }) => writer.write()));
  return settled.every(Boolean);
}

/** One replica moves everything: the others would find nothing. */
async function moveAll([first]: readonly Replica[]): Promise<boolean> {
  return first === undefined || first.flusher.flush();
}

/** As a rolling upgrade does: the old replica writes what it has, then the new one starts. */
async function replace(replicas: Replica[], index: number, start: () => Replica): Promise<void> {
  const old = replicas[index];
  await until(async () => old === undefined || ((await old.writer.write()) && old.buffer.size === 0));
  replicas[index] = start();
}

/** What Postgres has of the week. */
export interface Kept {
  readonly byKey: ReadonlyMap<string, number>;
  readonly byHour: ReadonlyMap<string, { readonly requests: number; readonly rateLimited: number }>;
  /** Names of the months that hours have partitions for. */
  readonly months: readonly string[];
  readonly usageRows: number;
  readonly usageBytes: number;
}

/** Reads usage by SQL of its own. */
export async function readKept({ records: { db } }: WeekStores): Promise<Kept> {
  const totals = await sql<{ key_id: string; requests: number }>`
    SELECT key_id, requests FROM usage_totals WHERE requests > 0`.execute(db);
  const hours = await sql<{ name: string; requests: number; limited: number }>`
    SELECT key_id || ' ' || (extract(epoch FROM hour) / 3600)::bigint AS name, requests, rate_limited AS limited
    FROM usage_hours`.execute(db);
  const months = await sql<{ month: string }>`
    SELECT right(inhrelid::regclass::text, 7) AS month FROM pg_inherits
    WHERE inhparent = 'usage_hours'::regclass AND inhrelid::regclass::text <> 'usage_hours_default'
    ORDER BY 1`.execute(db);
  const size = await sql<{ rows: number; bytes: number }>`
    SELECT ((SELECT count(*) FROM usage_hours) + (SELECT count(*) FROM usage_key_days)
      + (SELECT count(*) FROM usage_endpoint_days) + (SELECT count(*) FROM usage_customer_days)
      + (SELECT count(*) FROM usage_by_endpoint) + (SELECT count(*) FROM usage_by_customer))::bigint AS rows,
      (SELECT sum(pg_total_relation_size(oid)) FROM pg_class
        WHERE relkind = 'r' AND relname ~ '^usage_(hours|key_days|endpoint_days|customer_days|by_)')::bigint AS bytes
  `.execute(db);
  return {
    byKey: new Map(totals.rows.map(({ key_id, requests }) => [key_id, requests])),
    byHour: new Map(
      hours.rows.map((row) => [row.name, { requests: row.requests, rateLimited: row.limited }]),
    ),
    months: months.rows.map(({ month }) => month),
    usageRows: size.rows[0]?.rows ?? 0,
    usageBytes: size.rows[0]?.bytes ?? 0,
  };
}
