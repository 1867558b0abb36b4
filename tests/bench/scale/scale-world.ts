import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import type { RedisServer } from '../../support/redis-server.ts';
import { startTogether } from '../../support/stops.ts';
import { MAIN_CASE } from '../cases.ts';
import { CONNECTIONS, type LoadResult, runWrk } from '../load/run-load.ts';
import type { BenchBackend } from '../setup/backend.ts';
import { keysFile } from '../setup/candidate.ts';
import type { Programs } from '../setup/programs.ts';
import { startSurroundings } from '../setup/surroundings.ts';
import { startTollgate, type TollgateCandidate } from '../setup/tollgate.ts';
import { importKeys, makePlans, secretOf } from './scale-keys.ts';
import { zipfKeys } from './zipf.ts';

/** How much is measured. */
export interface ScaleSize {
  /** Most keys. */
  readonly keys: number;
  readonly rounds: number;
  /** Of a measured run of the load, and of the run before it. */
  readonly seconds: number;
  readonly warmUpSeconds: number;
  /** Longest time that one long task of the management interface may take; what is not done then is said. */
  readonly patienceSeconds: number;
}

/** Which keys a load presents: those with numbers below `keys`, each as often or by a Zipf law. */
interface KeyChoice {
  readonly keys: number;
  readonly law?: 'zipf';
  /** In place of those of these keys. */
  readonly secrets?: readonly string[];
}

interface ScaleLoad extends KeyChoice {
  readonly port: number;
  readonly seconds: number;
  readonly connections?: number;
}

/** All that the rows share: the stores, the backend and the keys. */
export interface ScaleWorld {
  readonly programs: Programs;
  readonly size: ScaleSize;
  readonly redis: RedisServer;
  readonly postgres: Client;
  readonly postgresUrl: string;
  readonly backend: BenchBackend;
  say(text: string): void;
  /** A replica, over the world's Redis unless the settings name another. The caller stops it. */
  startReplica(
    settings?: Readonly<Record<string, string>>,
    nodeArguments?: readonly string[],
  ): Promise<TollgateCandidate>;
  /** Imports keys until there are so many. Resolves with those that were imported and how long it took. */
  haveKeys(count: number): Promise<{ readonly imported: number; readonly seconds: number }>;
  load(load: ScaleLoad): Promise<LoadResult>;
  stop(): Promise<void>;
}

/** Lines of keys in the file of a load: more than it sends requests. */
const DRAWS = 200_000;

/** Starts what the rows share. What was started is stopped again when something can't be. */
export async function startScaleWorld(
  programs: Programs,
  size: ScaleSize,
  say: (text: string) => void,
): Promise<ScaleWorld> {
  return startTogether(async (stops) => {
    const { directory, redis, postgresUrl, backend } = await startSurroundings(programs, { stops });
    const postgres = new Client({ connectionString: postgresUrl });
    await postgres.connect();
    stops.push(() => postgres.end());
    const common = { programs, backendPort: backend.port, redisPort: redis.port, databaseUrl: postgresUrl };
    const replica = { ...common, name: 'tollgate', redisDatabase: 0 } as const;
    const startReplica: ScaleWorld['startReplica'] = (settings = {}, nodeArguments = []) =>
      startTollgate({ ...replica, settings, nodeArguments });
    let present = 0;
    let files = 0;
    const maker = await startReplica();
    await makePlans(maker.port).finally(() => maker.stop());
    return {
      ...{ programs, size, redis, postgres, postgresUrl, backend, say, startReplica },
      haveKeys: async (count) => {
        const from = present;
        if (count <= from) return { imported: 0, seconds: 0 };
        say(`importing ${count - from} keys`);
        const importer = await startReplica();
        const startedAtMs = performance.now();
        await importKeys(importer.port, from, count, size.keys).finally(() => importer.stop());
        present = count;
        const seconds = (performance.now() - startedAtMs) / 1000;
        // As autovacuum would have done within a minute.
        await postgres.query('VACUUM ANALYZE');
        return { imported: count - from, seconds };
      },
      load: async ({ port, seconds, connections = CONNECTIONS, ...choice }) => {
        files += 1;
        const file = join(directory, `keys-${files}`);
        const secrets = choice.secrets ?? numbersOf(choice).map(secretOf);
        await writeFile(file, keysFile(secrets.map((secret) => ({ secret, id: '-', limit: 0 }))));
        const result = await runWrk(programs.wrk, { port, seconds, connections, file, benchCase: MAIN_CASE });
        await rm(file);
        return result;
      },
    };
  });
}

function numbersOf({ keys, law }: KeyChoice): readonly number[] {
  return law === 'zipf' ? zipfKeys(keys, DRAWS, Math.random) : Array.from({ length: keys }, (_, n) => n);
}
