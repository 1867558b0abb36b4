import { sql } from 'kysely';
import { systemClock } from '../../src/platform/clock.ts';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import type { RecordsDatabase } from '../../src/storage/postgres/records-database.ts';
import { PostgresUsageHistory } from '../../src/storage/postgres/usage/postgres-usage-history.ts';
import { closeRedis, type RedisConnection } from '../../src/storage/redis/redis-connection.ts';
import { RedisLiveUsage } from '../../src/storage/redis/usage/redis-live-usage.ts';
import { StoredUsage } from '../../src/usage/stored-usage.ts';
import { type CompletedRequest, UsageBuffer } from '../../src/usage/usage-buffer.ts';
import { UsageFlusher } from '../../src/usage/usage-flusher.ts';
import { sampleKey, storeKeys } from '../support/sample-records.ts';
import { scriptCommand } from '../support/script-command.ts';
import { findRedis } from '../support/test-stores.ts';
import { connectForUsage, recordingOver, silent } from '../usage/support/usage-stores.ts';
import { printFigure } from './report/table.ts';
import { withRecords } from './setup/with-records.ts';

scriptCommand(
  'bench:usage',
  'What a recorded request costs with 10 000 keys: in the process, written to Redis, moved to Postgres, and in memory. Every key has five endpoints and three customers; each round touches all keys, as the worst case for both stores.',
).parse();

const KEYS = 10_000;
const ENDPOINTS = 5;
const CUSTOMERS = 3;
const ROUNDS = 5;
const REQUESTS_A_KEY = 8;
const RECORDED = 2_000_000;

function completed(number: number, keyIds: readonly string[]): CompletedRequest {
  return {
    keyId: keyIds[number % keyIds.length] ?? '',
    planId: 'default',
    endpoint: `/v1/resources/${number % ENDPOINTS}`,
    customerId: `customer-${number % CUSTOMERS}`,
    status: number % 10 === 0 ? 500 : 200,
    successful: number % 10 !== 0,
    rateLimited: false,
    shadowLimited: 0,
    units: 1,
    responseTimeMs: 12.5,
    bytesIn: 0,
    bytesOut: 932,
  };
}

function heapBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

async function bytesInRedis(redis: RedisConnection): Promise<number> {
  const info = await redis.info('memory');
  return Number(/used_memory:(\d+)/.exec(info)?.[1]);
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now();
  await run();
  return (performance.now() - startedAtMs) / 1000;
}

const redisServer = await findRedis();
const redis = await connectForUsage(redisServer.url);
try {
  await withRecords(async (records) => {
    const keys = Array.from({ length: KEYS }, () => sampleKey());
    await storeKeys(records, keys);
    await measure(
      records,
      keys.map(({ id }) => id),
    );
  });
} finally {
  await closeRedis(redis);
  await redisServer.stop();
}

async function measure({ db }: Records, keyIds: readonly string[]): Promise<void> {
  await measureRecording(keyIds);
  const heapBefore = heapBytes();
  const usage = usageOver(db);
  recordAll(usage.buffer, keyIds);
  printFigure('buffer of one process, per key that it holds', (heapBytes() - heapBefore) / KEYS, 'bytes');
  await measureMoves(usage, keyIds);
  await measureReads(usage, keyIds);
}

async function measureRecording(keyIds: readonly string[]): Promise<void> {
  const buffer = new UsageBuffer({ clock: systemClock, mask: (name) => name });
  const requests = Array.from({ length: 30_000 }, (_, number) => completed(number, keyIds));
  const seconds = await timed(async () => {
    for (let number = 0; number < RECORDED; number += 1) {
      const request = requests[number % requests.length];
      if (request) buffer.record(request);
    }
  });
  printFigure('record() in the process, per request', (seconds / RECORDED) * 1e9, 'ns');
}

type MeasuredUsage = ReturnType<typeof usageOver>;

function usageOver(db: RecordsDatabase) {
  const live = new RedisLiveUsage(redis, systemClock);
  const history = new PostgresUsageHistory(db);
  return {
    ...{ db, live, history },
    ...recordingOver({ live, history }),
    flusher: new UsageFlusher({ live, history, clock: systemClock, log: silent, intervalMs: 0 }),
  };
}

/** Records the requests of a round. */
function recordAll(buffer: UsageBuffer, keyIds: readonly string[]): void {
  for (let number = 0; number < KEYS * REQUESTS_A_KEY; number += 1) {
    // Not in step with the number of keys, so that each key gets several names.
    buffer.record({
      ...completed(number + Math.floor(number / KEYS), keyIds),
      keyId: keyIds[number % KEYS] ?? '',
    });
  }
}

/** Writes and moves the requests of each round; those of the first are in the buffer already. */
async function measureMoves(
  { db, buffer, writer, flusher }: MeasuredUsage,
  keyIds: readonly string[],
): Promise<void> {
  const redisBefore = await bytesInRedis(redis);
  let writeSeconds = 0;
  let flushSeconds = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    if (round > 0) recordAll(buffer, keyIds);
    writeSeconds += await timed(() => writer.write());
    if (round === 0)
      printFigure('Redis, per key with counts', ((await bytesInRedis(redis)) - redisBefore) / KEYS, 'bytes');
    flushSeconds += await timed(() => flusher.flush());
  }
  const keys = KEYS * ROUNDS;
  const requests = keys * REQUESTS_A_KEY;
  printFigure('into Redis, keys a second', keys / writeSeconds, 'keys/s');
  printFigure(
    `into Redis, requests a second (${REQUESTS_A_KEY} a key and write)`,
    requests / writeSeconds,
    'requests/s',
  );
  printFigure('into Postgres, keys a second', keys / flushSeconds, 'keys/s');
  printFigure('into Postgres, requests a second', requests / flushSeconds, 'requests/s');
  const { rows } = await sql<{ requests: number }>`
    SELECT sum(requests)::bigint AS requests FROM usage_totals`.execute(db);
  if (rows[0]?.requests !== requests) throw new Error('not every request was moved: figures void');
}

async function measureReads(
  { live, history, buffer, writer, flusher }: MeasuredUsage,
  keyIds: readonly string[],
): Promise<void> {
  const reader = new StoredUsage(live, history);
  const readings = 500;
  const reading = await timed(async () => {
    for (let number = 0; number < readings; number += 1) await reader.read(keyIds[number] ?? '');
  });
  printFigure('detail response, one after another, each', (reading / readings) * 1e6, 'µs');
  const heavy = keyIds[0] ?? '';
  for (let number = 0; number < 1500; number += 1) {
    buffer.record({ ...completed(number, [heavy]), endpoint: `/${number}`, customerId: `${number}` });
  }
  await writer.write();
  await flusher.flush();
  const heavyReading = await timed(async () => {
    for (let number = 0; number < 100; number += 1) await reader.read(heavy);
  });
  printFigure(
    'detail response with 500 endpoints and 1000 customers, each',
    (heavyReading / 100) * 1e6,
    'µs',
  );
}
