import { statusOf } from '../../support/burst.ts';
import type { RedisServer } from '../../support/redis-server.ts';
import { TcpRelay } from '../../support/tcp-relay.ts';
import { until } from '../../support/until.ts';
import { type RedisFleet, startInProcessRedisFleet } from './redis-fleet.ts';

/** More requests a day than a test sends. */
export const ROOMY_LIMIT = 1_000_000;

export interface FleetKey {
  readonly id: string;
  readonly secret: string;
}

/** Two replicas, each with its own way to Redis. */
export interface TwoWays {
  readonly fleet: RedisFleet;
  readonly ways: readonly [TcpRelay, TcpRelay];
  readonly urls: readonly [string, string];
  /** Makes keys that both replicas know, each bound to a plan with its name. */
  makeKeys<const Name extends string>(names: readonly Name[]): Promise<Readonly<Record<Name, FleetKey>>>;
}

interface TwoWaysOptions {
  /** Gets what stops each part, the first one first. */
  readonly stops: (() => Promise<unknown>)[];
  readonly settings?: Readonly<Record<string, string>>;
  readonly startFleet?: typeof startInProcessRedisFleet;
  /** Sees what either replica sends to Redis. */
  readonly onSent?: (bytes: Buffer) => void;
}

export async function startTwoWays(
  redis: RedisServer,
  { stops, settings = {}, startFleet = startInProcessRedisFleet, onSent = () => {} }: TwoWaysOptions,
): Promise<TwoWays> {
  const startWay = async (): Promise<TcpRelay> => {
    const way = await TcpRelay.start(redis.port, { onSent });
    stops.push(() => way.stop());
    return way;
  };
  const ways = [await startWay(), await startWay()] as const;
  const fleet = await startFleet(ways.map((way) => ({ ...settings, REDIS_URL: way.urlOf(redis.url) })));
  stops.push(() => fleet.stop());
  const [first, second] = fleet.replicas;
  if (first === undefined || second === undefined) throw new Error('no replicas');
  const makeKey = async (name: string): Promise<FleetKey> => {
    await fleet.admin.makePlan(name, ROOMY_LIMIT, 'day');
    const key = await fleet.admin.makeKey(name, name);
    for (const { url } of fleet.replicas) await until(async () => (await statusOf(url, key.secret)) === 200);
    return key;
  };
  return {
    fleet,
    ways,
    urls: [first.url, second.url],
    makeKeys: async <const Name extends string>(names: readonly Name[]) => {
      const keys: Partial<Record<Name, FleetKey>> = {};
      for (const name of names) keys[name] = await makeKey(name);
      return keys as Record<Name, FleetKey>;
    },
  };
}
