import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import pino from 'pino';
import { ChangeFollower } from '../../../src/limiter/changes/change-follower.ts';
import type { ChangedRecord, ChangesRead } from '../../../src/limiter/changes/record-changes.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const NOTHING: ChangesRead = { position: 'p', changed: [], mayMiss: false, claimable: 0, waiting: 0 };
const BEAT_MS = 250;

describe('following the changes', () => {
  let clock: ManualClock;
  let follower: ChangeFollower;
  let reads: { readonly startedAtMs: number; readonly position: string | undefined }[];
  let respond: () => Promise<ChangesRead>;
  let followedUntilMs: number;
  let found: ChangedRecord[];
  let missed: number;

  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['performance'] });
    clock = new ManualClock(1_000_000);
    [reads, found, missed] = [[], [], 0];
    respond = async () => NOTHING;
    const onRead = (changed: readonly ChangedRecord[], untilMs: number) => {
      found.push(...changed);
      followedUntilMs = untilMs;
    };
    follower = new ChangeFollower({
      changes: {
        read: (position) => {
          reads.push({ startedAtMs: clock.monotonicMs(), position });
          return respond();
        },
      },
      ...{ clock, log: pino({ level: 'silent' }), onRead },
      onSilence: (nowMs) => onRead([], nowMs),
      onMissed: () => {
        missed += 1;
      },
      onCounted: () => {},
    });
  });
  afterEach(async () => {
    respond = async () => NOTHING;
    jest.useRealTimers();
  });

  /** The process runs for so long. */
  async function run(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += BEAT_MS) {
      clock.advance(BEAT_MS);
      await jest.advanceTimersByTimeAsync(BEAT_MS);
    }
  }

  /** The process stands still for so long, and then runs on. */
  async function pause(ms: number): Promise<void> {
    clock.advance(ms);
    await run(BEAT_MS);
  }

  const behindMs = () => clock.monotonicMs() - followedUntilMs;

  it('reads once a second, on from the last position, and gives what was changed', async () => {
    follower.start();
    await run(3000);
    expect(reads).toHaveLength(4);
    expect(reads.map(({ position }) => position)).toEqual([undefined, 'p', 'p', 'p']);
    expect(behindMs()).toBeLessThanOrEqual(1000);
    respond = async () => ({
      ...NOTHING,
      changed: [{ kind: 'key', id: 'key_a', version: 2 }],
      mayMiss: true,
    });
    await run(1000);
    expect(found).toEqual([{ kind: 'key', id: 'key_a', version: 2 }]);
    expect(missed).toBe(1);
  });

  it('takes a store for silent that does not respond, so that keys can still be served', async () => {
    follower.start();
    await run(1000);
    respond = () => new Promise(() => {});
    await run(5000);
    expect(behindMs()).toBe(0);
  });

  it('takes no pause of the process for silence of the store', async () => {
    follower.start();
    await run(1000);
    const { promise, resolve } = Promise.withResolvers<ChangesRead>();
    respond = () => promise;
    await run(1000);
    await pause(60_000);
    expect(behindMs()).toBeGreaterThan(60_000);
    resolve(NOTHING);
    await run(1000);
    expect(behindMs()).toBeLessThanOrEqual(1000);
  });

  it('leaves copies to themselves once it is stopped', async () => {
    follower.start();
    await follower.stop();
    expect(followedUntilMs).toBe(Number.POSITIVE_INFINITY);
  });
});
