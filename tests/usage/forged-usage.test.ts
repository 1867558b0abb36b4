import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { systemClock } from '../../src/platform/clock.ts';
import {
  liveUsageKeyName,
  usageBatchKeyName,
  usageSourcesKeyName,
  usageWritersKeyName,
} from '../../src/storage/redis/usage/usage-key-names.ts';
import { shardOf } from '../../src/usage/shards.ts';
import { UsageFlusher } from '../../src/usage/usage-flusher.ts';
import { until } from '../support/until.ts';
import { completed, sliceOf } from './support/sample-usage.ts';
import { expireLeases, recordingOver, writeSlices } from './support/usage-stores.ts';
import { createUsageWorld, type UsageWorld } from './support/usage-world.ts';

const HOUR = Math.floor(Date.now() / 3_600_000);
const DAY = Math.floor(HOUR / 24);

let world: UsageWorld;
let direct: Redis;
beforeAll(async () => {
  world = await createUsageWorld();
  direct = new Redis(world.redis.url);
});
beforeEach(async () => {
  await direct.flushall();
  // Below ids far ahead, which a test has moved, the usage of a later one in the same shard would be outdated.
  await world.records.db.deleteFrom('usage_shards').execute();
});

function logged() {
  const lines: object[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  return { lines, log: pino({ base: null, timestamp: false }, { write }) };
}
afterAll(async () => {
  direct.disconnect();
  await world.close();
});

describe('usage of a shard into which another program writes', () => {
  /** Two keys of one shard. */
  let keyId: string;
  let otherId: string;
  beforeEach(async () => {
    [keyId = ''] = await world.newKeys(1);
    do [otherId = ''] = await world.newKeys(1);
    while (shardOf(otherId) !== shardOf(keyId));
  });

  /** A request with each of the keys, and then what `forge` adds for the data set. */
  async function writeAndForge(forge: (source: string) => Promise<unknown>): Promise<void> {
    await writeSlices(world.live, sliceOf(keyId, {}), sliceOf(otherId, {}));
    const [source = ''] = await direct.smembers(usageSourcesKeyName(shardOf(keyId)));
    await forge(source);
  }

  const addLine = (line: string) => (source: string) =>
    direct.rpushx(liveUsageKeyName(shardOf(keyId), source), `\nk${keyId}\t${line}`);

  /** Moves all shards once, as if no flusher had them. Resolves with whether that succeeded, and what was logged. */
  async function flush(): Promise<{ readonly isDone: boolean; readonly lines: readonly object[] }> {
    const { lines, log } = logged();
    await expireLeases(world.redis.url);
    const isDone = await new UsageFlusher({ ...world, clock: systemClock, log, intervalMs: 0 }).flush();
    return { isDone, lines };
  }

  const requests = async (id: string) => (await world.history.read(id)).totals.requests;

  it('is moved, with a count that is too high held at a bound', async () => {
    const huge = '9223372036854774784';
    await writeAndForge(addLine(`${DAY}\tgold\t1\t${HOUR}\t${huge} 1 1 1 1\t/x\tanonymous`));
    await direct.hset(usageWritersKeyName(shardOf(keyId)), 'forged', `${huge}0 1`);
    expect(await flush()).toEqual({ isDone: true, lines: [] });
    await writeSlices(world.live, sliceOf(keyId, { times: 1000 }), sliceOf(otherId, {}));
    expect(await flush()).toEqual({ isDone: true, lines: [] });
    expect(await requests(otherId)).toBe(2);
    expect(await requests(keyId)).toBeLessThan(1e16);
  });

  it.each([
    ['an hour', `${DAY}\tgold\t1\t99999999999999999\t1 1 1 1 1\t/x\tanonymous`],
    ['an hour of several', `${DAY}\tgold\t1\nh1 1 1 1 1\t${HOUR}\nh1 1 1 1 1\tnone\nh1 1 1 1 1\t1e17`],
    ['a day', `99999999999999999\tgold\t1\t${HOUR}\t1 1 1 1 1\t/x\tanonymous`],
    ['a last use', `${DAY}\tgold\t99999999999999999\t${HOUR}\t1 1 1 1 1\t/x\tanonymous`],
  ])('is moved although %s in it is no instant', async (_what, line) => {
    await writeAndForge(addLine(line));
    const { lastUsedAtMs } = await world.stored.read(keyId);
    expect(new Date(lastUsedAtMs ?? Number.NaN).toISOString()).toMatch(/^\d{4}-/);
    expect(await flush()).toEqual({ isDone: true, lines: [] });
    expect(await requests(otherId)).toBe(1);
  });

  it('is kept where the id of its batch is far ahead, and moved once that is mended', async () => {
    const shard = shardOf(keyId);
    await direct.hset(usageWritersKeyName(shard), '#id', String(Number.MAX_SAFE_INTEGER - 1));
    let batch = '';
    await writeAndForge(async (source) => {
      batch = usageBatchKeyName(shard, source);
    });
    const { isDone, lines } = await flush();
    expect(isDone).toBe(false);
    expect(lines).toEqual([
      {
        level: 50,
        shard,
        err: expect.objectContaining({ message: expect.stringContaining('a day ahead of') }),
        msg: 'usage was rejected by its store; it is kept',
      },
    ]);
    // As the runbook says.
    await direct.hdel(usageWritersKeyName(shard), '#id');
    await direct.lset(batch, 0, `${Date.now() * 1000} 0`);
    expect(await flush()).toEqual({ isDone: true, lines: [] });
    await writeSlices(world.live, sliceOf(keyId, {}));
    expect(await flush()).toEqual({ isDone: true, lines: [] });
    expect([await requests(keyId), await requests(otherId)]).toEqual([2, 1]);
  });

  it('is moved where the clock of Redis was set back after it had been far ahead', async () => {
    const shard = shardOf(keyId);
    const aheadUs = (Date.now() + 1e11) * 1000;
    await world.records.db
      .insertInto('usage_shards')
      .values({ shard, source: 'before', last_batch: aheadUs, moved_at: new Date() })
      .execute();
    await direct.hset(usageWritersKeyName(shard), '#id', String(aheadUs));
    await writeAndForge(async () => {});
    expect(await flush()).toEqual({ isDone: true, lines: [] });
    expect(await requests(keyId)).toBe(1);
  });
});

describe('the usage of other shards', () => {
  /** Of the key whose shard has an entry of another type, and of one whose shard is moved later in a round. */
  let keyId: string;
  let otherId: string;
  beforeEach(async () => {
    const keyIds = (await world.newKeys(12)).toSorted((a, b) => shardOf(a) - shardOf(b));
    [keyId = '', otherId = ''] = [keyIds[0], keyIds.at(-1)];
  });

  it.each([
    ['its writers have another type', usageWritersKeyName, ['SET', 'x'], /^WRONGTYPE /],
    ['its data sets have another type', usageSourcesKeyName, ['SET', 'x'], /^WRONGTYPE /],
    ['its last id is no number', usageWritersKeyName, ['HSET', '#id', 'x'], /^ERR /],
  ] as const)(
    'is written although that of one is not, where %s',
    async (_what, nameOf, [command, ...args], reason) => {
      const { lines, log } = logged();
      const { buffer, writer } = recordingOver(world, { log });
      const entry = nameOf(shardOf(keyId));
      await direct.call(command, entry, ...args);
      for (const id of [keyId, otherId]) buffer.record(completed({ keyId: id }));
      for (const _ of ['at first', 'again']) expect(await writer.write()).toBe(false);
      expect((await world.stored.read(otherId)).requests).toBe(1);
      expect(lines).toEqual([
        {
          level: 40,
          shards: 1,
          shard: shardOf(keyId),
          reason: expect.stringMatching(reason),
          msg: 'usage could not be written; it is kept and tried again',
        },
      ]);
      await direct.del(entry);
      await until(() => writer.write());
      await world.flushAll();
      for (const id of [keyId, otherId]) expect((await world.history.read(id)).totals.requests).toBe(1);
    },
  );

  it('is moved although the data sets of one have another type', async () => {
    const { lines, log } = logged();
    await writeSlices(world.live, sliceOf(otherId, {}));
    await direct.set(usageSourcesKeyName(shardOf(keyId)), 'x');
    expect(await new UsageFlusher({ ...world, clock: systemClock, log, intervalMs: 0 }).flush()).toBe(false);
    expect((await world.history.read(otherId)).totals.requests).toBe(1);
    expect(lines).toEqual([
      {
        level: 50,
        shard: shardOf(keyId),
        err: expect.objectContaining({ message: expect.stringMatching(/^WRONGTYPE /) }),
        msg: 'usage was rejected by its store; it is kept',
      },
    ]);
  });
});
