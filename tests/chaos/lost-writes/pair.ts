import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { onRedis, untilReplicating } from '../../support/on-redis.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import { TcpRelay } from '../../support/tcp-relay.ts';
import { until } from '../../support/until.ts';
import type { SeededRandom } from '../seeded-random.ts';
import type { FragileRedis } from './fragile-redis.ts';

/** A master and its standby; each replica of the gateway has a way of its own to the one that it takes for the master. */
export async function startPair(replicas: number): Promise<FragileRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-chaos-pair-'));
  const pair = new Pair(directory);
  try {
    await pair.start(replicas);
  } catch (error) {
    await pair.stop();
    throw error;
  }
  return {
    name: 'a master and a standby',
    settingsOf: (replica) => ({ REDIS_URL: pair.urlOf(replica) }),
    faults: [
      {
        name: 'the master dies before its standby has the last writes',
        run: (random) => pair.failOver(random),
      },
      { name: 'a split: each replica has a master of its own', run: (random) => pair.split(random) },
      { name: 'the master is restarted with older data', run: (random) => pair.rollBack(random) },
      { name: 'the master is emptied', run: () => pair.empty() },
    ],
    stop: () => pair.stop(),
  };
}

class Pair {
  readonly #directory: string;
  readonly #ways: TcpRelay[] = [];
  #master: RedisServer | undefined;
  #standby: RedisServer | undefined;
  #replication: TcpRelay | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async start(replicas: number): Promise<void> {
    this.#master = await startRedisServer(['--dir', this.#directory]);
    for (let replica = 0; replica < replicas; replica += 1) {
      this.#ways.push(await TcpRelay.start(this.#master.port));
    }
    await this.#addStandby();
  }

  urlOf(replica: number): string {
    return `redis://127.0.0.1:${this.#ways[replica]?.port}`;
  }

  async failOver(random: SeededRandom): Promise<void> {
    this.#replication?.silence();
    await wait(random.between(50, 2000));
    const old = this.#master;
    old?.kill('SIGKILL');
    await wait(random.between(0, 1000));
    await this.#promote();
    for (const way of this.#ways) way.pass(this.#master?.port);
    await old?.stop();
    await this.#addStandby();
  }

  async split(random: SeededRandom): Promise<void> {
    this.#replication?.silence();
    await wait(random.between(0, 500));
    const old = this.#master;
    await this.#promote();
    const [first, ...others] = this.#ways;
    for (const way of others) this.#moveToMaster(way);
    await wait(random.between(500, 5000));
    if (first !== undefined) this.#moveToMaster(first);
    await old?.stop();
    await this.#addStandby();
  }

  async rollBack(random: SeededRandom): Promise<void> {
    // A standby that connects has the data saved for it, and Redis saves once at a time.
    await until(() =>
      onServer(this.#master, (redis) => redis.save()).then(
        () => true,
        (error: Error) => {
          if (!error.message.includes('save already in progress')) throw error;
          return false;
        },
      ),
    );
    await wait(random.between(500, 4000));
    const port = String(this.#master?.port);
    await this.#master?.stop();
    this.#master = await startRedisServer(['--dir', this.#directory, '--port', port]);
  }

  async empty(): Promise<void> {
    await onServer(this.#master, (redis) => redis.flushall());
  }

  async stop(): Promise<void> {
    for (const way of this.#ways) await way.stop();
    await this.#replication?.stop();
    await this.#standby?.stop();
    await this.#master?.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }

  #moveToMaster(way: TcpRelay): void {
    way.pass(this.#master?.port);
    way.cut();
  }

  async #promote(): Promise<void> {
    await onServer(this.#standby, (redis) => redis.replicaof('NO', 'ONE'));
    await this.#replication?.stop();
    this.#master = this.#standby;
    this.#standby = undefined;
  }

  async #addStandby(): Promise<void> {
    this.#standby = await startRedisServer(['--dir', this.#directory, '--dbfilename', 'standby.rdb']);
    const replication = await TcpRelay.start(this.#master?.port);
    this.#replication = replication;
    await onServer(this.#standby, (redis) => redis.replicaof('127.0.0.1', replication.port));
    await untilReplicating(this.#standby.url);
  }
}

async function onServer(
  server: RedisServer | undefined,
  work: (redis: Redis) => Promise<unknown>,
): Promise<void> {
  if (server === undefined) throw new Error('there is no such server');
  await onRedis(server.url, work);
}
