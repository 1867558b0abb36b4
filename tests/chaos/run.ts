import { Agent } from 'node:http';
import { Option } from 'commander';
import { hashSlotOf } from '../../src/storage/redis/decisions/hash-slot.ts';
import { shardOf } from '../../src/usage/shards.ts';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { positiveNumber, scriptCommand, wholeNumber } from '../support/script-command.ts';
import { type Stops, stopAll, stopAtSignals } from '../support/stops.ts';
import { until } from '../support/until.ts';
import { runFairness } from './attacks/fairness.ts';
import { DurableRedis } from './durable-redis.ts';
import { startChanges } from './events/changes-of-keys.ts';
import { wrongEvents } from './events/judge-events.ts';
import { eventFaults, type Fault, runLane, slotMoves, storeFaults, trafficFaults } from './faults.ts';
import { type Attempt, attempt, startLoad } from './load.ts';
import { startPair } from './lost-writes/pair.ts';
import { runLostWrites } from './lost-writes/round.ts';
import { startCluster, startSentinels } from './lost-writes/watched.ts';
import { SeededRandom } from './seeded-random.ts';
import { verdict } from './verdict.ts';
import { type ChaosKey, isReady, makeKeys, startWorld, type World } from './world.ts';

/** Longest time until the next verdict: what the clients saw is kept in memory until then. Minutes. */
const ROUND_MINUTES = 5;
const RESHARDING_MINUTES = 0.5;
type Part = (minutes: number) => Promise<readonly string[]>;
/** What Redis does, or the form in which it loses writes: how much of all minutes that gets, and how it runs. */
const PARTS: Readonly<Record<string, readonly [(minutes: number) => number, Part]>> = {
  keeps: [(minutes) => minutes / 2, runDurable],
  moves: [() => RESHARDING_MINUTES, runResharded],
  pair: [(minutes) => minutes / 6, (minutes) => runFragile(startPair, minutes)],
  sentinels: [(minutes) => minutes / 6, (minutes) => runFragile(startSentinels, minutes)],
  cluster: [(minutes) => minutes / 6, (minutes) => runFragile(startCluster, minutes)],
};
const REPLICAS = 3;
/** Milliseconds. */
const STALL_MS = 1000;
/** Of each of the two phases, without and with attack. Milliseconds. */
const FAIRNESS_MS = 8000;

const script = scriptCommand(
  'chaos',
  `First half a minute of attacks on a replica that others use, then faults from a seeded list under load. Every few minutes all is mended, and what was promised and not held is reported. Keys are changed all the time, and a receiver hears of it.
In the first half of the time Redis keeps what it has acknowledged; then slots of a cluster move for half a minute; in the second half Redis loses writes, as a pair, behind sentinels and as a cluster, while keys are changed. Ends with 0 when everything held.`,
)
  .argument('[minutes]', 'how long, at most a day', positiveNumber(24 * 60), 2)
  .argument('[seed]', 'of the list; a random one by default', wholeNumber())
  .argument('[workers]', 'of each replica; chosen by the seed by default', wholeNumber(1))
  .addOption(new Option('--only <part>', 'for the whole time').choices(Object.keys(PARTS)))
  .parse();
const minutes: number = script.processedArgs[0];
const seed: number = script.processedArgs[1] ?? Math.floor(Math.random() * 1_000_000);
const workersOfAll: number | undefined = script.processedArgs[2];
const only: string | undefined = script.opts().only;

const random = new SeededRandom(seed);
// A generator of its own for each lane: their choices must not depend on which is faster.
const [storeSeed, trafficSeed, fragileSeed] = [1, 2, 3].map(() => random.between(0, 2 ** 31)) as [
  number,
  number,
  number,
];
const workers = Array.from({ length: REPLICAS }, () => workersOfAll ?? random.between(1, 2));
const eventSeed = random.between(0, 2 ** 31);
const slotSeed = random.between(0, 2 ** 31);
/** What has been started and not stopped. */
const running: Stops = [];
stopAtSignals(() => stopAll(running));
const faults: string[] = [];
try {
  report(`${minutes} minutes, seed ${seed}, replicas with ${workers.join(', ')} workers`);
  if (only === undefined) faults.push(...(await runAttacked()));
  for (const [part, [share, run]] of Object.entries(PARTS)) {
    if (only === undefined) faults.push(...(await run(share(minutes))));
    else if (only === part) faults.push(...(await run(minutes)));
  }
} finally {
  await stopAll(running);
}
report(faults.length === 0 ? 'all promises held' : `${faults.length} promises not held, seed ${seed}`);
process.exit(faults.length === 0 ? 0 : 1);

/** Everything that one client, address or key can do to the others, at once. */
async function runAttacked(): Promise<readonly string[]> {
  const faults = await runFairness({ lastsMs: FAIRNESS_MS, report, running });
  for (const fault of faults) report(`NOT HELD: ${fault}`);
  await stopAll(running);
  return faults;
}

/** Every fault but those that make Redis lose what it has acknowledged: limits and statistics are exact. */
async function runDurable(minutes: number): Promise<readonly string[]> {
  const redis = await DurableRedis.start();
  running.push(() => redis.stop());
  const world = await startWorld(workers, { REDIS_URL: redis.url });
  running.push(() => world.stop());
  watchOwnStalls(world);
  const lanes = [
    storeFaults(new SeededRandom(storeSeed), redis),
    trafficFaults(new SeededRandom(trafficSeed), workers),
    eventFaults(new SeededRandom(eventSeed)),
  ];
  const faults: string[] = [];
  for (const roundMinutes of roundsOf(minutes)) {
    faults.push(...(await runRound(world, { keys: await makeKeys(world), lanes, roundMinutes })));
  }
  await stopAll(running);
  return faults;
}

/** Slots of a cluster move under load, those of the keys and of their usage: limits and statistics are exact, and no request fails. */
async function runResharded(minutes: number): Promise<readonly string[]> {
  const cluster = await startRedisCluster(3);
  running.push(() => cluster.stop());
  const world = await startWorld(workers, { REDIS_URL: cluster.url, REDIS_MODE: 'cluster' });
  running.push(() => world.stop());
  watchOwnStalls(world);
  const random = new SeededRandom(slotSeed);
  const faults: string[] = [];
  for (const roundMinutes of roundsOf(minutes)) {
    const keys = await makeKeys(world);
    const slots = keys.flatMap(({ id }) => [hashSlotOf(id), hashSlotOf(`usage-${shardOf(id)}`)]);
    faults.push(
      ...(await runRound(world, { keys, lanes: [slotMoves(random, cluster, slots)], roundMinutes })),
    );
  }
  await stopAll(running);
  return faults;
}

/** Redis loses writes, in a form that it can be run in, while keys are changed: the changes hold all the same. */
async function runFragile(start: typeof startPair, minutes: number): Promise<readonly string[]> {
  const random = new SeededRandom(fragileSeed);
  const faults: string[] = [];
  for (const roundMinutes of roundsOf(minutes)) {
    const lastsMs = roundMinutes * 60_000;
    const found = await runLostWrites(start, { random, lastsMs, report, running });
    for (const fault of found) report(`NOT HELD: ${fault}`);
    faults.push(...found);
    await stopAll(running);
  }
  return faults;
}

/** Each ends with a verdict, after which what the clients saw is forgotten. Minutes. */
function* roundsOf(minutes: number): Generator<number> {
  for (let left = minutes; left > 0; left -= ROUND_MINUTES) yield Math.min(left, ROUND_MINUTES);
}

interface Round {
  readonly keys: readonly ChaosKey[];
  readonly lanes: readonly Iterator<Fault>[];
  readonly roundMinutes: number;
}

async function runRound(world: World, { keys, lanes, roundMinutes }: Round): Promise<readonly string[]> {
  const load = startLoad(world, keys);
  const changes = startChanges(world);
  const deadline = performance.now() + roundMinutes * 60_000;
  await Promise.all(lanes.map((lane) => runLane(world, lane, { deadline, report })));
  report('no more faults');
  for (const replica of world.replicas) await isReady(replica);
  await load.stop();
  await changes.stop();
  const { attempts } = load;
  attempts.push(...(await serveAgain(world, keys)));
  for (const [end, { length }] of Map.groupBy(
    attempts,
    ({ way, end, status }) => `${way}: ${end} ${status}`,
  )) {
    report(`${String(length).padStart(8)} × ${end}`);
  }
  const faults = [
    ...(await verdict({ world, keys, attempts, report })),
    ...(await wrongEvents({ world, keys, ...changes, report })),
  ];
  for (const fault of faults) report(`NOT HELD: ${fault}`);
  return faults;
}

/** The backend lives in this process: while that gets no time from the machine, the backend hangs. */
function watchOwnStalls({ troubles }: World): void {
  let lastAt = performance.now();
  setInterval(() => {
    const now = performance.now();
    if (now - lastAt > STALL_MS) {
      troubles.backend.add(lastAt, now);
      report(`this process stood still for ${Math.round(now - lastAt)} ms`);
    }
    lastAt = now;
  }, STALL_MS / 10).unref();
}

/** Each replica serves a key again by itself and through nginx, counted by Redis; and no key is too much for it. */
async function serveAgain({ replicas }: World, keys: readonly ChaosKey[]): Promise<readonly Attempt[]> {
  const agent = new Agent();
  const attempts: Attempt[] = [];
  const ways = ['proxied', 'nginx'] as const;
  for (const [replica, key, way] of replicas.flatMap((replica) =>
    keys.flatMap((key) => ways.map((way) => [replica, key, way] as const)),
  )) {
    const isCounted = async () => {
      const made = await attempt(key, replica, { agent, path: '/', way });
      attempts.push(made);
      return made.window !== undefined;
    };
    await until(isCounted, { timeoutMs: 30_000 });
  }
  return attempts;
}

function report(line: string): void {
  process.stdout.write(`${(performance.now() / 1000).toFixed(1).padStart(8)} s  ${line}\n`);
}
