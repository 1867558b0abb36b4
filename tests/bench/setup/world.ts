import { onRedis } from '../../support/on-redis.ts';
import { startTogether } from '../../support/stops.ts';
import { queryDatabase } from '../../support/stores.ts';
import type { BenchOptions } from '../options.ts';
import type { BenchBackend } from './backend.ts';
import type { Candidate } from './candidate.ts';
import type { Cores } from './cores.ts';
import { startEnvoy } from './envoy.ts';
import { type BenchKeys, makeKeys } from './keys.ts';
import { plainGateways } from './plain-gateways.ts';
import type { Programs } from './programs.ts';
import { startSurroundings } from './surroundings.ts';
import {
  startTollgate,
  type TollgateCandidate,
  type TollgateVariant,
  type TollgateWorld,
} from './tollgate.ts';
import { DECIDE_SCRIPT, startExpress, startNginxLua } from './yardsticks.ts';

/** All that runs while the bench measures. */
export interface World {
  readonly programs: Programs;
  readonly cores: Cores;
  readonly candidates: readonly Candidate[];
  readonly keys: BenchKeys;
  readonly backend: BenchBackend;
  readonly redis: { readonly port: number; readonly pid: number };
  /** For temporary files. */
  readonly directory: string;
  /** One more replica, over the stores of the one called `tollgate`. */
  startReplica(variant: TollgateVariant): Promise<TollgateCandidate>;
  /** The same of the one called `tollgate-before`; undefined where none takes part. */
  readonly startReplicaBefore: World['startReplica'] | undefined;
  /** What `startReplica` starts it with. */
  readonly replica: TollgateWorld;
  stop(): Promise<void>;
}

/** What of the options decides who takes part. */
type WorldOptions = Pick<BenchOptions, 'nodeArguments' | 'against' | 'envoy'>;

/** Starts stores, backend and candidates. What was started is stopped again when something can't be. */
export async function startWorld(
  programs: Programs,
  { nodeArguments, against, envoy }: WorldOptions,
): Promise<World> {
  return startTogether(async (stops) => {
    const around = await startSurroundings(programs, { stops, redisArguments: ['--hz', '1'] });
    const { cores, directory, redis, postgresUrl, backend } = around;
    await onRedis(redis.url, (client) => client.script('LOAD', DECIDE_SCRIPT));

    const common = { programs, backendPort: backend.port, redisPort: redis.port };
    const first = { ...common, name: 'tollgate', redisDatabase: 1, databaseUrl: postgresUrl } as const;
    // The version before can't be asked to work on the records of this one, but this one upgrades its records.
    const keys = await makeKeysOnce({ ...first, ...(against !== undefined && { repository: against }) });
    const again = {
      ...({ ...common, name: 'tollgate-again', redisDatabase: 2 } as const),
      databaseUrl: await copyDatabase(postgresUrl, 'again'),
    };
    const unwatched = {
      ...({ ...common, name: 'tollgate-unwatched', redisDatabase: 4 } as const),
      ...{ databaseUrl: await copyDatabase(postgresUrl, 'unwatched'), settings: { EVENTS_THRESHOLDS: '' } },
    };
    const before = against !== undefined && {
      ...({ ...common, name: 'tollgate-before', redisDatabase: 3, repository: against } as const),
      databaseUrl: await copyDatabase(postgresUrl, 'before'),
    };
    const yardsticks = { ...common, keys: keys.all, directory };
    const candidates: Candidate[] = [];
    const starts = [
      ...[first, again, unwatched, ...(before ? [before] : [])].map(
        (world) => () => startTollgate({ ...world, nodeArguments }),
      ),
      () => startNginxLua(yardsticks),
      () => startExpress(yardsticks),
      ...(envoy === undefined ? [] : [() => startEnvoy(yardsticks, envoy)]),
      ...plainGateways(yardsticks),
    ];
    for (const start of starts) {
      const candidate = await start();
      stops.push(candidate.stop);
      candidates.push(candidate);
    }
    return {
      programs,
      cores,
      candidates,
      keys,
      backend,
      redis,
      directory,
      replica: first,
      startReplica: (variant) => startTollgate({ ...first, ...variant }),
      startReplicaBefore: before ? (variant) => startTollgate({ ...before, ...variant }) : undefined,
    };
  });
}

async function makeKeysOnce(world: TollgateWorld): Promise<BenchKeys> {
  const tollgate = await startTollgate(world);
  try {
    return await makeKeys(tollgate.port);
  } finally {
    await tollgate.stop();
  }
}

/** Each other replica works on a copy of the first one's records. */
async function copyDatabase(url: string, name: 'again' | 'unwatched' | 'before'): Promise<string> {
  const administration = new URL(url);
  administration.pathname = '/template1';
  await queryDatabase(administration.href, `CREATE DATABASE ${name} TEMPLATE postgres`);
  const copy = new URL(url);
  copy.pathname = `/${name}`;
  return copy.href;
}
