import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onPath, requireProgram } from './debian-package.ts';
import { endChild, hasEnded } from './end-child.ts';
import { freePort, isFree } from './free-port.ts';
import { until } from './until.ts';

/** A Redis server of a test's own, to be broken at will. */
export interface RedisServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Ends it and removes its files. Harmless when it is gone already. */
  stop(): Promise<void>;
  /** Sends a signal; SIGKILL is a crash. */
  kill(signal: NodeJS.Signals): void;
  /** Freezes the process: connections stay open, there is no response. */
  pause(): void;
  resume(): void;
}

/**
 * Starts a Redis server on a free loopback port, or on the `--port` that `args` name (to restart one that was killed), and
 * resolves when it responds. Nothing is kept on disk unless `args` say so. The caller must stop it; the end of this
 * process ends it too.
 */
export async function startRedisServer(args: readonly string[] = []): Promise<RedisServer> {
  if (args.includes('--port')) {
    const port = Number(args[args.indexOf('--port') + 1]);
    // A server that was killed a moment ago may still hold it.
    await until(() => isFree(port));
    return await start(port, args);
  }
  for (let tries = 1; ; tries += 1) {
    try {
      return await start(await freePort(), args);
    } catch (error) {
      // Another run of the tests on this machine may have been quicker to take the port.
      if (tries === PORT_TRIES) throw error;
    }
  }
}

const PORT_TRIES = 3;

async function start(port: number, args: readonly string[]): Promise<RedisServer> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-redis-'));
  const { child, pid, stop } = await runRedis({ directory, port }, [
    ...['--port', String(port), '--bind', '127.0.0.1', '--dir', directory],
    ...['--save', '', '--appendonly', 'no', '--databases', '64'],
    // By default a master waits five seconds for more copies before it sends its data to one.
    ...['--repl-diskless-sync-delay', '0', ...args],
  ]);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    pid,
    stop,
    kill: (signal) => void child.kill(signal),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
  };
}

/** Runs a server or a sentinel, and resolves when it responds. `stop` removes its directory, too. */
export async function runRedis(
  { directory, port }: { readonly directory: string; readonly port: number },
  args: readonly string[],
): Promise<{ readonly child: ChildProcess; readonly pid: number; stop(): Promise<void> }> {
  const binary = await redisBinary();
  const child = spawn(binary, args, { stdio: 'ignore', cwd: directory });
  const onExit = () => child.kill('SIGKILL');
  process.once('exit', onExit);
  const stop = async () => {
    // SIGKILL: the data is a test's, and a paused process hears nothing else.
    await endChild(child);
    process.removeListener('exit', onExit);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await once(child, 'spawn');
    await until(() => hasEnded(child) || respondsToPing(port));
    if (hasEnded(child) || child.pid === undefined) {
      throw new Error(`${binary} ended at once with code ${child.exitCode}: is port ${port} free?`);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { child, pid: child.pid, stop };
}

const SERVER = 'redis-server';

/** The path of a Redis server's executable, installed where it is missing and can be. Throws with what to install otherwise. */
async function redisBinary(): Promise<string> {
  return (await onPath(SERVER)) ?? (await onPath('valkey-server')) ?? (await requireProgram(SERVER, SERVER));
}

/** Whether a server on a loopback port responds to PING. */
function respondsToPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    socket.setTimeout(500, () => socket.destroy());
    socket.once('data', (response) => {
      resolve(response.toString().startsWith('+PONG'));
      socket.destroy();
    });
    socket.once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
  });
}
