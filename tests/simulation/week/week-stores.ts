import type { Records } from '../../../src/storage/postgres/open-records.ts';
import { closeRedis, type RedisConnection } from '../../../src/storage/redis/redis-connection.ts';
import { onRedis, untilReplicating } from '../../support/on-redis.ts';
import { openTestRecords } from '../../support/records.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import { createMigratedDatabase } from '../../support/stores.ts';
import { portOf, TcpRelay } from '../../support/tcp-relay.ts';
import { until } from '../../support/until.ts';
import { connectForUsage } from '../../usage/support/usage-stores.ts';

/** A real Redis with its replica, and a real Postgres, each behind a relay that the week breaks. */
export interface WeekStores {
  readonly redis: RedisConnection;
  /** Through the relay. */
  readonly records: Records;
  /** Every new connection to Postgres fails, and those that there are end. */
  losePostgres(): void;
  returnPostgres(): Promise<void>;
  /** The master dies once its replica has everything, and the replica takes its place. `meanwhile` runs while there is no master. */
  failOverRedis(meanwhile: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

export async function openWeekStores(): Promise<WeekStores> {
  const [master, standby, database] = await Promise.all([
    startRedisServer(),
    startRedisServer(),
    createMigratedDatabase(),
  ]);
  await follow(standby, master);
  const ofRedis = await TcpRelay.start(master.port);
  const ofPostgres = await TcpRelay.start(portOf(database.url));
  const redis = await connectForUsage(ofRedis.urlOf(master.url));
  const records = openTestRecords(ofPostgres.urlOf(database.url), { maxConnections: 10 });
  return {
    ...{ redis, records },
    losePostgres: () => ofPostgres.reject(),
    returnPostgres: async () => ofPostgres.pass(portOf(database.url)),
    failOverRedis: async (meanwhile) => {
      await untilCaughtUp(master, standby);
      ofRedis.reject();
      await master.stop();
      await meanwhile();
      await onRedis(standby.url, (client) => client.replicaof('NO', 'ONE'));
      ofRedis.pass(standby.port);
      await until(() => redis.status === 'ready');
    },
    close: async () => {
      await closeRedis(redis);
      await records.close();
      await Promise.all([ofRedis.stop(), ofPostgres.stop()]);
      await Promise.all([master.stop(), standby.stop(), database.drop()]);
    },
  };
}

async function follow(standby: RedisServer, master: RedisServer): Promise<void> {
  await onRedis(standby.url, (client) => client.replicaof('127.0.0.1', master.port));
  await untilReplicating(standby.url);
}

async function untilCaughtUp(master: RedisServer, standby: RedisServer): Promise<void> {
  const offset = (server: RedisServer) =>
    onRedis(
      server.url,
      async (client) => /^master_repl_offset:(\d+)/m.exec(await client.info('replication'))?.[1],
    );
  await until(async () => (await offset(master)) === (await offset(standby)));
}
