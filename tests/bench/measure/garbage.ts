import { setTimeout as wait } from 'node:timers/promises';
import { MAIN_CASE } from '../cases.ts';
import { runLoad } from '../load/run-load.ts';
import type { World } from '../setup/world.ts';

/** What a replica allocates and throws away. */
export interface Garbage {
  /** Bytes of JavaScript objects allocated per request. */
  readonly bytesPerRequest: number;
  /** Collections per 10 000 requests. */
  readonly collections: number;
  /** Milliseconds of pauses per 10 000 requests. */
  readonly pauseMs: number;
}

/** `[pid:0x…]   1234 ms: Scavenge 23.4 (45.6) -> 12.3 (45.6) MB, … 0.93 / 0.00 ms …` */
const LINE =
  /ms: (?:Scavenge|Mark-Compact)[^\d]*([\d.]+) \([\d.]+\) -> ([\d.]+) \([\d.]+\) MB, (?:pooled: [\d.]+ MB, )?([\d.]+)/g;

/** Reads the garbage collector's own log of a fresh replica in the main case. */
export async function measureGarbage(
  startReplica: World['startReplica'],
  world: World,
  seconds: number,
): Promise<Garbage> {
  const replica = await startReplica({ nodeArguments: ['--trace-gc'] });
  try {
    const load = { benchCase: MAIN_CASE, port: replica.port };
    await runLoad(world, { ...load, seconds: 2 * seconds });
    await wait(100);
    const seen = replica.output().length;
    const { requests } = await runLoad(world, { ...load, seconds });
    await wait(100);
    return garbageOf(replica.output().slice(seen), requests);
  } finally {
    await replica.stop();
  }
}

/** What the heap grew by between one collection and the next; the first of the log has none before it. */
function garbageOf(log: string, requests: number): Garbage {
  let megabytes = 0;
  let collections = 0;
  let pauseMs = 0;
  let left: number | undefined;
  for (const [, before, after, pause] of log.matchAll(LINE)) {
    if (left !== undefined) {
      megabytes += Number(before) - left;
      collections += 1;
      pauseMs += Number(pause);
    }
    left = Number(after);
  }
  // The log begins and ends between two collections, so one more period than is counted went by.
  const share = collections === 0 ? 0 : (collections + 1) / collections;
  return {
    bytesPerRequest: ((megabytes * share) / requests) * 1024 * 1024,
    collections: (collections / requests) * 10_000,
    pauseMs: (pauseMs / requests) * 10_000,
  };
}
