import { setTimeout as wait } from 'node:timers/promises';
import { Admin } from '../../support/admin.ts';
import { freePort } from '../../support/free-port.ts';
import { ENCRYPTION_KEY, ROOT_TOKEN } from '../../support/gateway.ts';
import { type PostgresServer, startPostgresServer } from '../../support/postgres-server.ts';
import type { Stops } from '../../support/stops.ts';
import { until } from '../../support/until.ts';
import { type ChaosBackend, startChaosBackend } from '../chaos-backend.ts';
import { ChaosReplica } from '../chaos-replica.ts';
import { Intervals } from '../intervals.ts';
import { type Attempt, startLoad } from '../load.ts';
import type { SeededRandom } from '../seeded-random.ts';
import { type ChaosKey, isReady } from '../world.ts';
import { Changes } from './changes.ts';
import type { FragileRedis } from './fragile-redis.ts';
import { judge } from './judge.ts';

const REPLICAS = 2;
/** Only stalls, before Redis loses anything. Milliseconds. */
const STALLS_ALONE_MS = 10_000;
/** After the last fault: what must hold by then has time to be seen. Milliseconds. */
const QUIET_MS = 14_000;
/** Between two faults. Milliseconds. */
const LONGEST_PAUSE_MS = 12_000;

/** How long, with which choices, and who hears of it. */
export interface RoundOptions {
  readonly random: SeededRandom;
  readonly lastsMs: number;
  readonly report: (line: string) => void;
  /** Gets what has to be stopped afterwards, in the order in which it was started. */
  readonly running: Stops;
}

/** Replicas over a Redis that loses writes, while keys are changed and processes stall. Resolves with the promises that were not held. */
export async function runLostWrites(
  start: (replicas: number) => Promise<FragileRedis>,
  options: RoundOptions,
): Promise<readonly string[]> {
  const { random, report, running } = options;
  const redis = await start(REPLICAS);
  running.push(() => redis.stop());
  report(`Redis as ${redis.name}`);
  const postgres = await startPostgresServer();
  running.push(() => postgres.stop());
  const backend = await startChaosBackend();
  running.push(() => backend.stop());
  const replicas: ChaosReplica[] = [];
  running.push(() => Promise.all(replicas.map((replica) => replica.kill())));
  for (let index = 0; index < REPLICAS; index += 1) {
    replicas.push(await startReplica(redis, index, { postgres, backend }));
  }
  for (const replica of replicas) await isReady(replica);
  const changes = await Changes.prepare(replicas, postgres.url, random);
  running.push(() => changes.stop());
  return disturb({ redis, replicas, changes }, options);
}

async function startReplica(
  redis: FragileRedis,
  index: number,
  stores: { readonly postgres: PostgresServer; readonly backend: ChaosBackend },
): Promise<ChaosReplica> {
  const environment = {
    BACKEND_URL: stores.backend.url,
    DATABASE_URL: stores.postgres.url,
    ROOT_TOKEN,
    ENCRYPTION_KEY,
    ...redis.settingsOf(index),
  };
  const ports = { port: await freePort(), opsPort: await freePort() };
  const replica = new ChaosReplica(environment, { ...ports, workers: 1 });
  await replica.start();
  return replica;
}

interface Parts {
  readonly redis: FragileRedis;
  readonly replicas: readonly ChaosReplica[];
  readonly changes: Changes;
}

async function disturb(parts: Parts, { random, lastsMs, report }: RoundOptions): Promise<readonly string[]> {
  const { redis, replicas, changes } = parts;
  const usedUpKey = await useUp(replicas);
  changes.asked.push(usedUpKey);
  const redisTrouble = new Intervals();
  const since = performance.now();
  const deadline = since + lastsMs;
  const load = startLoad({ replicas }, changes.asked);
  changes.start();
  const stalls = stallNowAndThen(replicas, random, deadline);
  await wait(Math.min(STALLS_ALONE_MS, lastsMs / 2));
  const usedUp = { keyId: usedUpKey.id, since, until: performance.now() };
  while (performance.now() < deadline) {
    const fault = random.pick(redis.faults);
    report(fault.name);
    redisTrouble.begin();
    await fault.run(random);
    redisTrouble.end();
    await wait(random.between(0, LONGEST_PAUSE_MS));
  }
  await stalls;
  await wait(QUIET_MS);
  await changes.stop();
  await load.stop();
  const { judged, atOnce, faults } = judge({
    attempts: load.attempts,
    changes: changes.made,
    redisTrouble,
    usedUp,
  });
  report(
    `${changes.made.length} changes, ${load.attempts.length} requests: ${judged} judged, ${atOnce} of them from the change on`,
  );
  for (const [status, { length }] of Map.groupBy(load.attempts, (attempt: Attempt) => attempt.status)) {
    report(`${String(length).padStart(8)} × ${status}`);
  }
  return faults;
}

/** A key whose only request of the day was made. */
async function useUp(replicas: readonly ChaosReplica[]): Promise<ChaosKey> {
  const admin = new Admin(replicas[0]?.url ?? '');
  await admin.makePlan('one', 1, 'day');
  const key = { ...(await admin.makeKey('used up', 'one')), limit: 1 };
  for (const { url } of replicas) {
    await until(async () => {
      const response = await fetch(url, { headers: { authorization: `Bearer ${key.secret}` } });
      await response.arrayBuffer();
      return response.status === 429;
    });
  }
  return key;
}

async function stallNowAndThen(
  replicas: readonly ChaosReplica[],
  random: SeededRandom,
  deadline: number,
): Promise<void> {
  while (performance.now() < deadline) {
    const replica = random.pick(replicas);
    replica.freeze();
    await wait(random.between(50, 1200));
    replica.thaw();
    await wait(random.between(200, 1500));
  }
}
