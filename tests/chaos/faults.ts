import { setTimeout as wait } from 'node:timers/promises';
import { makeUsageEvents } from '../events/support/usage-oracle.ts';
import type { RedisCluster } from '../support/redis-cluster.ts';
import type { BackendMood } from './chaos-backend.ts';
import type { ChaosReplica } from './chaos-replica.ts';
import type { DurableRedis } from './durable-redis.ts';
import type { ReceiverMood } from './events/chaos-receiver.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { World } from './world.ts';

/** Something that goes wrong for a while. */
export interface Fault {
  readonly name: string;
  /** How long it lasts. Milliseconds. */
  readonly lastsMs: number;
  /** The pause after it. Milliseconds. */
  readonly pauseMs: number;
  strike(world: World): Promise<void>;
  mend(world: World): Promise<void>;
}

interface Blow extends Pick<Fault, 'name' | 'strike' | 'mend'> {
  /** How long it may last at most. Milliseconds. */
  readonly longestMs?: number;
}

const LONGEST_MS = 4000;
const LONGEST_STALL_MS = 1500;
/** Clients ask again where a slot's names are on two servers: for less than `REDIS_TIMEOUT_MS`. */
const LONGEST_HALFWAY_MS = 500;

/** What happens to Redis. */
function redisBlows(redis: DurableRedis): readonly Blow[] {
  return [
    onRedis(
      'kill Redis',
      () => redis.kill(),
      () => redis.restart(),
    ),
    onRedis(
      'pause Redis',
      async () => redis.pause(),
      async () => redis.resume(),
    ),
  ];
}

/** What happens to Postgres. */
const POSTGRES_BLOWS: readonly Blow[] = [
  onPostgres(
    'stop Postgres',
    ({ postgres }) => postgres.halt(),
    ({ postgres }) => postgres.resume(),
  ),
  onPostgres(
    'silence Postgres',
    async ({ postgresRelay: relay }) => relay.silence(),
    async ({ postgresRelay: relay }) => relay.pass(),
  ),
  onPostgres(
    'cut Postgres connections',
    async ({ postgresRelay: relay }) => relay.cut(),
    async () => {},
  ),
];

/** What happens to the backend at the same time. */
const BACKEND_BLOWS: readonly Blow[] = (['rejecting', 'hanging', 'truncating'] as const).map(onBackend);

/** The faults of one lane, without end: the same for the same seed. One blow to the stores after the other. */
export function* storeFaults(random: SeededRandom, redis: DurableRedis): Generator<Fault> {
  const blows = [...redisBlows(redis), ...POSTGRES_BLOWS];
  while (true) yield fault(random, random.pick(blows));
}

/**
 * Slots that move from one primary to another. No trouble of Redis: a request may wait for a moment, but needs no other explanation. Each
 * move stops halfway, so that some of a slot's names are on either server.
 */
export function* slotMoves(
  random: SeededRandom,
  { primaries, moveSlot }: RedisCluster,
  slots: readonly number[],
): Generator<Fault> {
  while (true) {
    const [slot, to] = [random.pick(slots), random.pick(primaries)];
    const halfway = Promise.withResolvers<void>();
    let moving: Promise<void> | undefined;
    yield {
      name: `move slot ${slot}`,
      lastsMs: random.between(0, LONGEST_HALFWAY_MS),
      pauseMs: random.between(0, LONGEST_HALFWAY_MS),
      strike: async () => {
        moving = moveSlot(slot, to, halfway.promise);
      },
      mend: async () => {
        halfway.resolve();
        await moving;
      },
    };
  }
}

/** The faults of the other lane: replicas, of which the number of workers is given, and the backend. */
export function* trafficFaults(random: SeededRandom, workers: readonly number[]): Generator<Fault> {
  while (true) {
    const index = random.between(0, workers.length - 1);
    const onReplica = [
      onOneReplica(`kill replica ${index}`, index, (replica) => replica.kill()),
      onOneReplica(`terminate replica ${index}`, index, (replica) => replica.terminate()),
      stallOf(index),
    ];
    if ((workers[index] ?? 1) > 1) {
      const victim = random.between(0, (workers[index] ?? 1) - 1);
      onReplica.push(
        onOneWorker(`kill a worker of replica ${index}`, index, victim),
        onOneReplica(`kill the primary process of replica ${index}`, index, (replica) =>
          replica.killPrimary(),
        ),
      );
    }
    yield fault(random, random.pick([...onReplica, ...BACKEND_BLOWS]));
  }
}

/** The faults of the third lane: the receiver of events, and replicas whose clock is ahead. */
export function* eventFaults(random: SeededRandom): Generator<Fault> {
  const blows = [...(['rejecting', 'hanging', 'resetting'] as const).map(onReceiver), CLOCK_AHEAD];
  while (true) yield fault(random, random.pick(blows));
}

/** Runs a lane until the deadline, and mends the last fault whatever happens. */
export async function runLane(
  world: World,
  faults: Iterator<Fault>,
  { deadline, report }: { readonly deadline: number; readonly report: (line: string) => void },
): Promise<void> {
  while (performance.now() < deadline) {
    const { value, done } = faults.next();
    if (done === true) return;
    const current: Fault = value;
    report(`${current.name} for ${current.lastsMs} ms`);
    await current.strike(world);
    await wait(current.lastsMs);
    await current.mend(world);
    await wait(current.pauseMs);
  }
}

function fault(random: SeededRandom, blow: Blow): Fault {
  const { longestMs = LONGEST_MS } = blow;
  return { ...blow, lastsMs: random.between(200, longestMs), pauseMs: random.between(500, 6000) };
}

function onRedis(name: string, strike: () => Promise<void>, mend: () => Promise<void>): Blow {
  return {
    name,
    strike: ({ troubles }) => {
      troubles.redis.begin();
      return strike();
    },
    mend: async ({ troubles }) => {
      await mend();
      troubles.redis.end();
    },
  };
}

function onPostgres(
  name: string,
  strike: (world: World) => Promise<void>,
  mend: (world: World) => Promise<void>,
): Blow {
  return {
    name,
    strike: (world) => {
      world.troubles.postgres.begin();
      return strike(world);
    },
    mend: async (world) => {
      await mend(world);
      world.troubles.postgres.end();
    },
  };
}

function onBackend(mood: BackendMood): Blow {
  return {
    name: `backend ${mood}`,
    strike: async ({ backend, troubles }) => {
      troubles.backend.begin();
      backend.setMood(mood);
    },
    mend: async ({ backend, troubles }) => {
      backend.setMood('well');
      troubles.backend.end();
    },
  };
}

function onReceiver(mood: ReceiverMood): Blow {
  return {
    name: `receiver ${mood}`,
    strike: async ({ receiver }) => receiver.setMood(mood),
    mend: async ({ receiver }) => receiver.setMood('well'),
  };
}

/** Usage of the present hour becomes events, as at a replica for which it is over; what is added to it is late. Postgres may be away. */
const CLOCK_AHEAD: Blow = {
  name: 'a clock is two hours ahead',
  strike: ({ db }) => makeUsageEvents(db).catch(() => {}),
  mend: async () => {},
};

function onOneReplica(name: string, index: number, strike: (replica: ChaosReplica) => Promise<void>): Blow {
  return {
    name,
    strike: async ({ replicas }) => {
      const replica = replicas[index];
      if (replica !== undefined) await strike(replica);
    },
    mend: async ({ replicas }) => void (await replicas[index]?.start()),
  };
}

/** Shorter than the time-outs: only clients that wait may notice. */
function stallOf(index: number): Blow {
  return {
    name: `stall replica ${index}`,
    longestMs: LONGEST_STALL_MS,
    strike: async ({ replicas }) => replicas[index]?.freeze(),
    mend: async ({ replicas }) => replicas[index]?.thaw(),
  };
}

function onOneWorker(name: string, index: number, victim: number): Blow {
  return {
    name,
    strike: async ({ replicas }) => void (await replicas[index]?.killWorker(victim)),
    mend: async ({ replicas }) => void (await replicas[index]?.isComplete()),
  };
}
