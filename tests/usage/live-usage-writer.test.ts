import { describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { StoreUnavailable } from '../../src/errors.ts';
import { type Clock, systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { InProcessLiveUsage } from '../../src/storage/embedded/in-process-live-usage.ts';
import type { UsageWrite, WriteOutcome } from '../../src/usage/live-usage.ts';
import { LiveUsageWriter } from '../../src/usage/live-usage-writer.ts';
import { shardOf } from '../../src/usage/shards.ts';
import { UsageBuffer } from '../../src/usage/usage-buffer.ts';
import { completed, requestsOf } from './support/sample-usage.ts';

type Fate = 'both' | 'arrives' | 'neither' | 'forgotten';

/** A store whose responses get lost: `fateOf` says for each write whether it arrives, and whether its response does. */
class UnreliableLiveUsage extends InProcessLiveUsage {
  fateOf: (write: UsageWrite) => Fate = () => 'both';

  override async write(writes: readonly UsageWrite[]): Promise<readonly WriteOutcome[]> {
    const outcomes: WriteOutcome[] = [];
    for (const write of writes) {
      const fate = this.fateOf(write);
      const [outcome = 'unknown'] = fate === 'both' || fate === 'arrives' ? await super.write([write]) : [];
      if (fate === 'both') outcomes.push(outcome);
      else outcomes.push(fate === 'forgotten' ? 'forgotten' : 'unknown');
    }
    return outcomes;
  }
}

function setUp(clock: Pick<Clock, 'monotonicMs'> = systemClock) {
  const live = new UnreliableLiveUsage(systemClock, systemRandom);
  const buffer = new UsageBuffer({ clock: systemClock, mask: (name) => name });
  const history = { hasWrite: async () => false as boolean };
  const lines: string[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(line) });
  const writer = new LiveUsageWriter({
    buffer,
    live,
    history,
    clock,
    log,
    random: systemRandom,
  });
  const record = (keyId: string) => buffer.record(completed({ keyId }));
  const stored = async (keyId: string) => requestsOf(await live.read([keyId]));
  return { live, buffer, history, writer, record, stored, lines };
}

/** Its store has counted one request of `a`, has lost the write of another, and knows of no write before it any more. */
async function setUpForgotten() {
  const { live, history, writer, record, stored } = setUp();
  record('a');
  await writer.write();
  live.fateOf = () => 'neither';
  record('a');
  await writer.write();
  live.fateOf = ({ previous }) => (previous === undefined ? 'both' : 'forgotten');
  return { history, writer, stored };
}

describe('the usage writer', () => {
  it('counts once what it wrote again because the response was lost', async () => {
    const { live, writer, record, stored } = setUp();
    live.fateOf = () => 'arrives';
    record('a');
    expect(await writer.write()).toBe(false);
    record('a');
    expect(await writer.write()).toBe(false);
    live.fateOf = () => 'both';
    expect(await writer.write()).toBe(true);
    expect(await writer.write()).toBe(true);
    expect(await stored('a')).toBe(2);
  });

  it('loses nothing while the store is down, and holds up no other shard', async () => {
    const { live, writer, record, stored } = setUp();
    live.fateOf = ({ shard }) => (shard === shardOf('a') ? 'neither' : 'both');
    for (let round = 0; round < 5; round += 1) {
      record('a');
      record('b');
      expect(await writer.write()).toBe(false);
      expect(await stored('b')).toBe(round + 1);
    }
    expect(writer.stats).toMatchObject({ shardsUnsettled: 1, writesUnknown: 5 });
    live.fateOf = () => 'both';
    expect(await writer.drain(AbortSignal.timeout(60_000))).toBe(true);
    expect(await stored('a')).toBe(5);
  });

  it('is exact over any sequence of lost requests and lost responses', async () => {
    const { live, writer, record, stored } = setUp();
    const fates = ['both', 'arrives', 'neither'] as const;
    live.fateOf = () => fates[Math.floor(Math.random() * 3)] ?? 'both';
    for (let round = 0; round < 500; round += 1) {
      for (const keyId of ['a', 'b', 'c']) record(keyId);
      await writer.write();
      await live.take(shardOf('a'));
      expect(await stored('a')).toBeLessThanOrEqual(round + 1);
    }
    live.fateOf = () => 'both';
    expect(await writer.drain(AbortSignal.timeout(60_000))).toBe(true);
    expect([await stored('a'), await stored('b'), await stored('c')]).toEqual([500, 500, 500]);
  });

  it.each([
    ['again', 'does not have', false, 2],
    ['not again', 'has', true, 1],
  ] as const)(
    'writes %s what the store forgot and the history %s',
    async (_again, _has, isCounted, times) => {
      const { history, writer, stored } = await setUpForgotten();
      history.hasWrite = async () => isCounted;
      expect(await writer.drain(AbortSignal.timeout(60_000))).toBe(true);
      expect(await stored('a')).toBe(times);
      expect(writer.stats.rollbacks).toBe(1);
    },
  );

  it('waits for the history where only that can tell whether a write was counted', async () => {
    const { history, writer, stored } = await setUpForgotten();
    history.hasWrite = async () => Promise.reject(new StoreUnavailable('postgres', new Error('unavailable')));
    for (let round = 0; round < 3; round += 1) expect(await writer.write()).toBe(false);
    expect(await stored('a')).toBe(1);
    history.hasWrite = async () => false;
    expect(await writer.drain(AbortSignal.timeout(60_000))).toBe(true);
    expect(await stored('a')).toBe(2);
  });

  it('needs no history for a first write that the store did not make', async () => {
    const { live, history, writer, record, stored } = setUp();
    history.hasWrite = async () => Promise.reject(new StoreUnavailable('postgres', new Error('unavailable')));
    live.fateOf = ({ previous }) => (previous === undefined ? 'both' : 'forgotten');
    record('a');
    expect(await writer.drain(AbortSignal.timeout(60_000))).toBe(true);
    expect(await stored('a')).toBe(1);
  });

  it('says once that the store lost its data, with the number of shards', async () => {
    const { live, writer, record, lines } = setUp();
    const recordAll = () => {
      for (let key = 0; key < 20; key += 1) record(`key-${key}`);
    };
    const shards = new Set(Array.from({ length: 20 }, (_, key) => shardOf(`key-${key}`))).size;
    recordAll();
    await writer.write();
    live.fateOf = ({ previous }) => (previous === undefined ? 'both' : 'forgotten');
    recordAll();
    expect(await writer.drain(AbortSignal.timeout(60_000))).toBe(true);
    const lost = lines
      .map((line) => JSON.parse(line) as { msg: string })
      .filter(({ msg }) => /lost/.test(msg));
    expect(lost).toEqual([{ level: 40, shards, msg: expect.stringContaining('Redis was replaced') }]);
  });

  it('says that a store loses data again and again in one line every ten minutes, with the number of shards since the last', async () => {
    let nowMs = 0;
    const { live, writer, record, lines } = setUp({ monotonicMs: () => nowMs });
    record('a');
    await writer.write();
    live.fateOf = ({ previous }) => (previous === undefined ? 'both' : 'forgotten');
    for (let second = 0; second <= 600; second += 1) {
      nowMs = second * 1000;
      record('a');
      while (!(await writer.write()));
    }
    expect(writer.stats.rollbacks).toBe(601);
    const losses = lines.map((line) => JSON.parse(line)).filter(({ msg }) => /evicts keys/.test(msg));
    expect(losses.map(({ shards }) => shards)).toEqual([1, 600]);
  });

  it('says once that the store does not respond, and once that usage is written again', async () => {
    const { live, writer, record, lines } = setUp();
    record('a');
    await writer.write();
    live.fateOf = () => 'neither';
    for (let round = 0; round < 3; round += 1) {
      record('a');
      await writer.write();
    }
    live.fateOf = () => 'both';
    for (let round = 0; round < 3; round += 1) {
      record('a');
      await writer.write();
    }
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { level: 40, shards: 1, msg: 'usage could not be written; it is kept and tried again' },
      { level: 30, msg: 'usage is written again' },
    ]);
  });

  it('gives up at the deadline when the store stays down', async () => {
    const { live, writer, record } = setUp();
    live.fateOf = () => 'neither';
    record('a');
    expect(await writer.drain(AbortSignal.timeout(100))).toBe(false);
    expect(writer.requestsUnsettled).toBe(1);
  });
});
