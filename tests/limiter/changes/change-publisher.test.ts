import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { sql } from 'kysely';
import pino from 'pino';
import { ChangePublisher } from '../../../src/limiter/changes/change-publisher.ts';
import type { CommittedVersion, RepublishedVersions } from '../../../src/limiter/record-versions.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { deleteKey, updateKey } from '../../support/one-key.ts';
import { createPostgresRecords, type TestRecords } from '../../support/records.ts';
import { sampleChange, sampleKey, samplePlan, storeKey } from '../../support/sample-records.ts';
import { until } from '../../support/until.ts';

/** Shared versions of which some parts may be away. */
class PartlyAway implements RepublishedVersions {
  readonly away = new Set<string>();
  readonly published = new Map<string, string | null>();

  async publishNewer(committed: readonly CommittedVersion[]): Promise<ReadonlySet<string>> {
    for (const { keyId, version } of committed) if (!this.away.has(keyId)) this.published.set(keyId, version);
    return new Set(committed.map(({ keyId }) => keyId).filter((keyId) => this.away.has(keyId)));
  }
}

describe('the publication of changes', () => {
  let store: TestRecords;
  let versions: PartlyAway;
  let clock: ManualClock;
  let publishers: ChangePublisher[];
  beforeEach(async () => {
    store = await createPostgresRecords();
    versions = new PartlyAway();
    clock = new ManualClock(1_000_000);
    publishers = [];
  });
  afterEach(async () => {
    for (const publisher of publishers) await publisher.stop();
    await store.remove();
  });

  function replica(): ChangePublisher {
    const { recordChanges: changes } = store.records;
    const log = pino({ level: 'silent' });
    const publisher = new ChangePublisher({ changes, versions, clock, log, onPublished: () => {} });
    publishers.push(publisher);
    return publisher;
  }

  async function changedKey(planId: string | null = null): Promise<string> {
    const key = await storeKey(store.records, { planId });
    await updateKey(store.records.keys, key.id, { enabled: false }, sampleChange());
    return key.id;
  }

  /** As if the changes had been made, and tried, long ago. */
  async function age(): Promise<void> {
    await sql`UPDATE record_changes SET changed_at = changed_at - interval '1 minute',
      claimed_until = claimed_until - interval '1 minute'`.execute(store.records.db);
  }

  async function waiting(): Promise<number> {
    return (await store.records.recordChanges.read(undefined)).waiting;
  }

  /** As a replica does that counts every second what waits. On a busy machine a claim may be over too soon. */
  async function publishUntilWaiting(count: number, publishers: readonly ChangePublisher[]): Promise<void> {
    await until(async () => {
      for (const each of publishers) each.publishSoon();
      // After a failed attempt there is a pause.
      clock.advance(10_000);
      return (await waiting()) === count;
    });
  }

  it.each([
    [900, 1],
    [901, 0],
  ])(
    'writes its last notes %d ms after a stop began %d times: the record store may hang',
    async (tookMs, times) => {
      const { recordChanges: changes } = store.records;
      const claimed = Promise.withResolvers<readonly []>();
      const claim = jest.spyOn(changes, 'claim').mockImplementation(() => claimed.promise);
      const noted = jest.spyOn(changes, 'notePublished');
      const publisher = replica();
      publisher.note({ kind: 'key', id: await changedKey(), version: 2 });
      publisher.publishSoon();
      const stopped = publisher.stop();
      clock.advance(tookMs);
      claimed.resolve([]);
      await stopped;
      expect(noted).toHaveBeenCalledTimes(times);
      claim.mockRestore();
      noted.mockRestore();
    },
  );

  it('gives each change to the shared versions, whichever replicas publish', async () => {
    const [changed, deleted] = [await changedKey(), await changedKey()];
    await deleteKey(store.records.keys, deleted, sampleChange());
    await age();
    await publishUntilWaiting(0, [replica(), replica(), replica()]);
    expect(versions.published).toEqual(
      new Map([
        [changed, '2.1'],
        [deleted, null],
      ]),
    );
  });

  it('leaves a change to be published that the shared versions did not take', async () => {
    const [reached, away] = [await changedKey(), await changedKey()];
    versions.away.add(away);
    await age();
    await publishUntilWaiting(1, [replica()]);
    expect([...versions.published.keys()]).toEqual([reached]);
    versions.away.clear();
    await publishUntilWaiting(0, [replica()]);
    expect(versions.published.get(away)).toBe('2.1');
  });

  it('publishes a changed plan only once all of its keys are', async () => {
    const plan = samplePlan();
    await store.records.plans.insert(plan, sampleChange());
    const [reached, away] = [sampleKey({ planId: plan.id }), sampleKey({ planId: plan.id })];
    for (const key of [reached, away]) await store.records.keys.insert(key, sampleChange());
    await store.records.plans.update(plan.id, { limit: 99 }, sampleChange());
    versions.away.add(away.id);
    await age();
    const first = replica();
    await until(() => {
      first.publishSoon();
      clock.advance(10_000);
      return versions.published.get(reached.id) === '1.2';
    });
    expect(await waiting()).toBe(1);
    versions.away.clear();
    await age();
    await publishUntilWaiting(0, [replica()]);
    expect(versions.published.get(away.id)).toBe('1.2');
  });

  it('takes over what a replica claimed that was killed', async () => {
    const keyId = await changedKey();
    await age();
    await store.records.recordChanges.claim(10);
    await age();
    await publishUntilWaiting(0, [replica()]);
    expect(versions.published.get(keyId)).toBe('2.1');
  });
});
