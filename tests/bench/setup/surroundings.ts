import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgresServer } from '../../support/postgres-server.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import type { Stops } from '../../support/stops.ts';
import { type BenchBackend, startBackend } from './backend.ts';
import { type Cores, findCores, moveTo } from './cores.ts';
import type { Programs } from './programs.ts';

/** What runs around the candidates of a bench. */
interface Surroundings {
  readonly cores: Cores;
  /** For temporary files. */
  readonly directory: string;
  readonly redis: RedisServer;
  readonly postgresUrl: string;
  readonly backend: BenchBackend;
}

interface SurroundingsOptions {
  /** Gets what stops each part, the first one first. */
  readonly stops: Stops;
  readonly redisArguments?: readonly string[];
}

/** Leaves the candidates' core to them, and starts the stores and the backend. */
export async function startSurroundings(
  programs: Programs,
  { stops, redisArguments = [] }: SurroundingsOptions,
): Promise<Surroundings> {
  const cores = findCores();
  // Children inherit the cores of the bench.
  await moveTo(cores.others, [process.pid], programs.taskset);
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-bench-'));
  stops.push(() => rm(directory, { recursive: true, force: true }));
  const redis = await startRedisServer(redisArguments);
  stops.push(redis.stop);
  const postgres = await startPostgresServer();
  stops.push(postgres.stop);
  const backend = await startBackend(programs, cores.others, directory);
  stops.push(backend.stop);
  return { cores, directory, redis, postgresUrl: postgres.url, backend };
}
