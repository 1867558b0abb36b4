import { describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { InProcessLiveUsage } from '../../src/storage/embedded/in-process-live-usage.ts';
import type { UsageWrite, WriteOutcome } from '../../src/usage/live-usage.ts';
import { Tally } from '../../src/usage/tally.ts';
import { TallyWriter } from '../../src/usage/tally-writer.ts';
import { silent } from './support/usage-stores.ts';

/** A store whose answers get lost: `answers` says for each write whether it arrives, and whether its answer does. */
class UnreliableLiveUsage extends InProcessLiveUsage {
  answers: (keyId: string) => 'both' | 'arrives' | 'neither' = () => 'both';

  override async write(writes: readonly UsageWrite[]): Promise<readonly WriteOutcome[]> {
    const outcomes: WriteOutcome[] = [];
    for (const write of writes) {
      const fate = this.answers(write.keyId);
      const [outcome = 'unknown'] = fate === 'neither' ? [] : await super.write([write]);
      outcomes.push(fate === 'both' ? outcome : 'unknown');
    }
    return outcomes;
  }
}

function setUp() {
  const live = new UnreliableLiveUsage(systemClock);
  const tally = new Tally({ clock: systemClock, mask: (name) => name });
  const writer = new TallyWriter({ tally, live, log: silent, random: systemRandom });
  const record = (keyId: string) =>
    tally.record({ keyId, endpoint: '/', customerId: 'c', successful: true, forwardedMs: null });
  const stored = async (keyId: string) => (await live.read(keyId))[0]?.sums.totals.requests ?? 0;
  return { live, tally, writer, record, stored };
}

describe('the tally writer', () => {
  it('counts once what it wrote again because the answer was lost', async () => {
    const { live, writer, record, stored } = setUp();
    live.answers = () => 'arrives';
    record('a');
    expect(await writer.write()).toBe(false);
    record('a');
    expect(await writer.write()).toBe(false);
    live.answers = () => 'both';
    expect(await writer.write()).toBe(true);
    expect(await writer.write()).toBe(true);
    expect(await stored('a')).toBe(2);
  });

  it('loses nothing while the store is away, and holds up no other key', async () => {
    const { live, writer, record, stored } = setUp();
    live.answers = (keyId) => (keyId === 'a' ? 'neither' : 'both');
    for (let round = 0; round < 5; round += 1) {
      record('a');
      record('b');
      expect(await writer.write()).toBe(false);
      expect(await stored('b')).toBe(round + 1);
    }
    expect(writer.stats).toMatchObject({ keysUnsettled: 1, writesUnknown: 5 });
    live.answers = () => 'both';
    expect(await writer.drain(AbortSignal.timeout(1000))).toBe(true);
    expect(await stored('a')).toBe(5);
  });

  it('is exact over any sequence of lost requests and lost answers', async () => {
    const { live, writer, record, stored } = setUp();
    const fates = ['both', 'arrives', 'neither'] as const;
    live.answers = () => fates[Math.floor(Math.random() * 3)] ?? 'both';
    for (let round = 0; round < 500; round += 1) {
      for (const keyId of ['a', 'b', 'c']) record(keyId);
      await writer.write();
      const [batch] = await live.takeBatches(['a']);
      expect((batch?.sums.totals.requests ?? 0) <= round + 1).toBe(true);
    }
    live.answers = () => 'both';
    expect(await writer.drain(AbortSignal.timeout(1000))).toBe(true);
    const ofA = await live.read('a');
    expect(ofA.reduce((sum, batch) => sum + batch.sums.totals.requests, 0)).toBe(500);
    expect([await stored('b'), await stored('c')]).toEqual([500, 500]);
  });

  it('drops the records of a deleted key and says how many', async () => {
    const { live, writer, record } = setUp();
    await live.erase('gone');
    record('gone');
    record('gone');
    expect(await writer.write()).toBe(true);
    expect(writer.stats.recordsDropped).toBe(2);
  });

  it('gives up at the deadline when the store stays away', async () => {
    const { live, writer, record } = setUp();
    live.answers = () => 'neither';
    record('a');
    expect(await writer.drain(AbortSignal.timeout(100))).toBe(false);
  });
});
