import { join, resolve } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { until } from '../../support/until.ts';
import type { Candidate, CandidateName } from './candidate.ts';
import { CANDIDATE_CORE, startPinned } from './pinned-process.ts';
import type { Programs } from './programs.ts';

/** Of the checkout that the bench is in. */
export const REPOSITORY = resolve(import.meta.dirname, '../../..');

export const ROOT_TOKEN = 'the-root-token-of-the-bench-0123456789';
const ENCRYPTION_KEY = Buffer.alloc(32, 9).toString('base64');

/** What differs between replicas. */
export interface TollgateVariant {
  /** For node, before the file; none by default. */
  readonly nodeArguments?: readonly string[];
  /** A command that runs node, such as one that counts what it does; none by default. */
  readonly wrapper?: readonly string[];
  /** Processes; one by default. */
  readonly workers?: number;
  /** Where it may run, as taskset writes it; the candidates' core by default. */
  readonly cores?: string;
  /** Other gateways, on loopback, may ask for decisions; by default none. */
  readonly decides?: boolean;
}

/** What a replica of Tollgate is started with. */
export interface TollgateWorld extends TollgateVariant {
  readonly name: Extract<CandidateName, `tollgate${string}`>;
  readonly programs: Programs;
  readonly backendPort: number;
  readonly redisPort: number;
  /** The replica's own, so that its background work is its own. */
  readonly redisDatabase: number;
  readonly databaseUrl: string;
  /** The checkout whose gateway is started; the bench's by default. */
  readonly repository?: string;
  /** Settings that differ from those of the others. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A replica, with what only it has. */
export interface TollgateCandidate extends Candidate {
  readonly opsPort: number;
  /** For other gateways; null where they may not ask. */
  readonly authorizePort: number | null;
  output(): string;
}

/** The settings of a replica between a backend and stores of the bench; its ports are of the system's choice. */
export function tollgateEnvironment(
  world: Pick<TollgateWorld, 'backendPort' | 'redisPort' | 'redisDatabase' | 'databaseUrl'>,
): Record<string, string> {
  return {
    NODE_ENV: 'production',
    AUTO_MIGRATE: 'true',
    HOST: '127.0.0.1',
    PORT: '0',
    OPS_PORT: '0',
    ROOT_TOKEN,
    ENCRYPTION_KEY,
    BACKEND_URL: `http://127.0.0.1:${world.backendPort}`,
    DATABASE_URL: world.databaseUrl,
    REDIS_URL: `redis://127.0.0.1:${world.redisPort}/${world.redisDatabase}`,
    // The bench saturates one core with the load, the stores and the backend: a decision may have to wait.
    REDIS_TIMEOUT_MS: '5000',
    // As the budget says, and as nginx and the Express build have it.
    ACCESS_LOG: 'off',
  };
}

/** Starts a replica as `npm start` does and resolves when it is ready. */
export async function startTollgate(world: TollgateWorld): Promise<TollgateCandidate> {
  const {
    nodeArguments = [],
    wrapper = [],
    workers = 1,
    cores = String(CANDIDATE_CORE),
    repository = REPOSITORY,
  } = world;
  const forOthers = world.decides === true ? { AUTHORIZE_PORT: '0', TRUSTED_PROXIES: '127.0.0.1' } : {};
  // Workers can't share a port that the system chose for each of them.
  const sharedPort = workers > 1 ? { WORKERS: String(workers), PORT: String(await freePort()) } : {};
  const child = startPinned({
    taskset: world.programs.taskset,
    cores,
    command: [
      ...wrapper,
      process.execPath,
      '--v8-pool-size=1',
      ...nodeArguments,
      join(repository, 'src/main.ts'),
    ],
    environment: {
      ...tollgateEnvironment(world),
      ...sharedPort,
      ...forOthers,
      ...world.settings,
      NODE_COMPILE_CACHE: join(repository, 'node_modules/.cache/tollgate'),
    },
  });
  const listening = () =>
    /"port":(\d+),"adminPort":(?:null|\d+),"opsPort":(\d+)(?:,"authorizePort":(\d+))?/.exec(child.output());
  await until(() => listening() !== null, { timeoutMs: 60_000 }).catch((cause: unknown) => {
    throw new Error(`Tollgate did not start:\n${child.output()}`, { cause });
  });
  const [, port, opsPort, authorizePort] = (listening() ?? []).map(Number);
  if (port === undefined || opsPort === undefined) throw new Error('Tollgate said no ports.');
  await until(async () => (await fetch(`http://127.0.0.1:${opsPort}/readyz`)).ok, { timeoutMs: 60_000 });
  return {
    name: world.name,
    port,
    opsPort,
    authorizePort: authorizePort || null,
    pids: child.pids,
    output: child.output,
    counts: { redisDatabase: world.redisDatabase, countKey: (id) => `tg:{${id}}:window:main:86400000` },
    stop: child.stop,
  };
}
