import { describe, expect, it } from '@jest/globals';
import { StoreUnavailable } from '../../src/errors.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { InProcessLiveUsage } from '../../src/storage/embedded/in-process-live-usage.ts';
import type { UsageBatch } from '../../src/usage/live-usage.ts';
import { UsageFlusher } from '../../src/usage/usage-flusher.ts';
import type { ApplyOutcome, UsageHistory } from '../../src/usage/usage-history.ts';
import { noUsage } from '../../src/usage/usage-sums.ts';
import { usageOf } from './support/sample-usage.ts';
import { silent } from './support/usage-stores.ts';

/** A history that only remembers what it took, and refuses as told. */
class ListedHistory implements UsageHistory {
  readonly taken: UsageBatch[] = [];
  refusal: (batches: readonly UsageBatch[]) => Error | undefined = () => undefined;

  async apply(batches: readonly UsageBatch[]): Promise<readonly ApplyOutcome[]> {
    const refused = this.refusal(batches);
    if (refused) throw refused;
    this.taken.push(...batches);
    return batches.map(() => ({ kind: 'applied' }));
  }
  read = async () => ({ lastId: 0, sums: noUsage() });
  readHours = async () => ({ lastId: 0, hours: new Map() });
  erase = async () => {};
  prune = async () => 0;
}

async function setUp(keyIds: readonly string[]) {
  const live = new InProcessLiveUsage(systemClock);
  const history = new ListedHistory();
  const flusher = new UsageFlusher({ live, history, log: silent });
  await live.write(keyIds.map((keyId) => ({ keyId, writer: 'w', sequence: 1, sums: usageOf({ times: 2 }) })));
  return { live, history, flusher };
}

const named = (count: number) => Array.from({ length: count }, (_, index) => `key ${index}`);

describe('the flusher', () => {
  it('moves the counts of all keys, and says what it did', async () => {
    const { live, history, flusher } = await setUp(named(1000));
    expect(await flusher.flush()).toBe(true);
    expect(history.taken.map(({ keyId }) => keyId).toSorted()).toEqual(named(1000).toSorted());
    expect(await live.read('key 7')).toEqual([]);
    expect(flusher.stats).toMatchObject({ batchesApplied: 1000, batchesPending: 0, failures: 0 });
    expect(await flusher.flush()).toBe(true);
    expect(history.taken).toHaveLength(1000);
  });

  it('keeps everything while the history is away, with one batch a key however long that is', async () => {
    const { live, history, flusher } = await setUp(named(3));
    history.refusal = () => new StoreUnavailable('postgres', new Error('away'));
    for (let sequence = 2; sequence < 12; sequence += 1) {
      expect(await flusher.flush()).toBe(false);
      await live.write([{ keyId: 'key 1', writer: 'w', sequence, sums: usageOf({ times: 1 }) }]);
    }
    expect((await live.read('key 1')).map(({ sums }) => sums.totals.requests)).toEqual([2, 10]);
    expect(flusher.stats.failures).toBeGreaterThanOrEqual(10);
    history.refusal = () => undefined;
    expect(await flusher.flush()).toBe(true);
    expect(await flusher.flush()).toBe(true);
    expect(await live.read('key 1')).toEqual([]);
    expect(history.taken.reduce((sum, { sums }) => sum + sums.totals.requests, 0)).toBe(2 * 3 + 10);
  });

  it('does not let a batch that the history refuses hold up the others', async () => {
    const { live, history, flusher } = await setUp(named(50));
    history.refusal = (batches) =>
      batches.some(({ keyId }) => keyId === 'key 13') ? new Error('value out of range') : undefined;
    const round = flusher.flush();
    await flusher.stop();
    await round;
    expect(history.taken).toHaveLength(49);
    expect(await live.read('key 13')).toHaveLength(1);
    expect(flusher.stats.failures).toBeGreaterThan(0);
  });
});
