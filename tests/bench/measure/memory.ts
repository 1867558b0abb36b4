import { setTimeout as wait } from 'node:timers/promises';
import { CASES, MAIN_CASE } from '../cases.ts';
import { runLoad } from '../load/run-load.ts';
import type { World } from '../setup/world.ts';
import { residentBytes } from './process-counts.ts';
import { useEveryKey } from './use-every-key.ts';

/** Resident memory of one fresh replica. Bytes. */
export interface MemoryCourse {
  /** Some seconds after the start, before its first request. */
  readonly idle: number;
  /** After a warm-up with 100 keys, before the other keys were seen. */
  readonly beforeKeys: number;
  /** When every one of the 10 000 keys had been used. */
  readonly start: number;
  readonly middle: number;
  readonly end: number;
  /** Requests between `start` and `end`. */
  readonly requests: number;
}

/** The heap has to have its size before the keys come, or what they take can't be distinguished from what the load takes. */
const WARM_UP_SECONDS = 20;
const SLICE_SECONDS = 5;
const IDLE_MS = 6000;
const MANY_KEYS = CASES.find(({ keys }) => keys === 'ten_thousand') ?? MAIN_CASE;

/** Sends about `requests` requests with 10 000 keys to a fresh replica. */
export async function measureMemory(world: World, requests: number): Promise<MemoryCourse> {
  const replica = await world.startReplica({});
  try {
    const { port } = replica;
    const resident = () => residentBytes(replica.pids());
    await wait(IDLE_MS);
    const idle = resident();
    const warmUp = { port, seconds: Math.min(WARM_UP_SECONDS, requests / 10_000) };
    await runLoad(world, { ...warmUp, benchCase: MAIN_CASE });
    const beforeKeys = resident();
    await useEveryKey(world, MANY_KEYS, port);
    await runLoad(world, { ...warmUp, benchCase: MANY_KEYS });
    const start = resident();
    let done = 0;
    let middle: number | undefined;
    while (done < requests) {
      const seconds = Math.min(SLICE_SECONDS, (requests - done) / 2000 + 0.5);
      done += (await runLoad(world, { port, benchCase: MANY_KEYS, seconds })).requests;
      if (done >= requests / 2) middle ??= resident();
    }
    const end = resident();
    return { idle, beforeKeys, start, middle: middle ?? end, end, requests: done };
  } finally {
    await replica.stop();
  }
}
