import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { endChild, hasEnded, outputOf } from './end-child.ts';
import { until } from './until.ts';

const SOURCE = resolve(import.meta.dirname, '../../src');
export const MAIN = join(SOURCE, 'main.ts');
/** What starts where a test names no file: in a run of Jest the same code in a few files, see `bundled-gateway.ts`. */
const GATEWAY = process.env.TEST_GATEWAY_MAIN ?? MAIN;
/**
 * The directory of compiled code. Given in the environment, it is also used for what Node loads before the gateway sets it: that saves a
 * fifth of the CPU time of a start.
 */
export const COMPILED_DIRECTORY = resolve(import.meta.dirname, '../../node_modules/.cache/tollgate');

/** A management credential for tests. */
export const ROOT_TOKEN = 'the-root-token-of-the-tests-0123456789';
export const ENCRYPTION_KEY = Buffer.alloc(32, 9).toString('base64');

/** The environment of a gateway that uses these services. */
export function gatewaySettings(backendUrl: string, databaseUrl: string, redisUrl: string) {
  return {
    BACKEND_URL: backendUrl,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    // A machine that runs other tests as well may stall for longer than an operator would want to wait.
    REDIS_TIMEOUT_MS: '5000',
    ROOT_TOKEN,
    ENCRYPTION_KEY,
  };
}

/** A replica, in this process or in a separate one. */
export interface RunningGateway {
  readonly url: string;
  readonly opsUrl: string;
  /** Of the port for other gateways, where AUTHORIZE_PORT is set. */
  readonly authorizeUrl: string;
  /** All that it wrote. */
  output(): string;
  /** Asks it to stop, and resolves once it has. */
  stop(): Promise<unknown>;
}

/** A replica in a separate process, which writes to standard output and error. */
export interface GatewayProcess extends RunningGateway {
  readonly pid: number;
  /** The workers that live, oldest first; none where it is a single process. */
  workerPids(): readonly number[];
  /** Sends SIGTERM and resolves with the exit code. */
  stop(): Promise<number | null>;
  /** Sends SIGKILL and resolves when the process has ended. */
  kill(): Promise<void>;
}

/** How a process ended, and all that it wrote. */
export interface EndedProcess {
  readonly code: number | null;
  readonly output: string;
}

interface StartOptions {
  readonly isReady?: boolean;
  /** The file that Node runs, and its arguments. */
  readonly main?: string;
  readonly args?: readonly string[];
  /** Files and sockets that it may have open at a time; as many as this process by default. */
  readonly openFiles?: number | undefined;
  /** On a pseudo terminal, which `kill` closes: `pid` is that of the program that makes it. */
  readonly isOnTerminal?: boolean;
}

/**
 * Starts the gateway, or one of another version, on free ports. Resolves once it is ready, or once it listens if `isReady` is false.
 */
export async function startGateway(
  environment: Readonly<Record<string, string>>,
  { isReady = true, main = GATEWAY, ...options }: StartOptions = {},
): Promise<GatewayProcess> {
  const { child, output } = spawnNode(main, environment, options);
  // By then all of its output has been read.
  const closed = once(child, 'close').then(([code]) => code as number | null);
  const listening = () =>
    /"port":(\d+),"adminPort":(?:null|\d+),"opsPort":(\d+)(?:,"authorizePort":(null|\d+))?/.exec(output());
  /** Waits until the claim holds. If the process ends first, or takes too long, kills it and rejects with its output. */
  const reach = async (claim: () => boolean | Promise<boolean>): Promise<void> => {
    try {
      await until(async () => hasEnded(child) || (await claim()));
      if (hasEnded(child)) throw new Error(`the gateway ended with code ${child.exitCode}`);
    } catch (cause) {
      child.kill('SIGKILL');
      await closed;
      throw new Error(`the gateway did not start, and wrote:\n${output()}`, { cause });
    }
  };
  await reach(() => listening() !== null);
  const ports = listening();
  const gateway: GatewayProcess = {
    url: `http://127.0.0.1:${ports?.[1]}`,
    opsUrl: `http://127.0.0.1:${ports?.[2]}`,
    authorizeUrl: `http://127.0.0.1:${ports?.[3]}`,
    pid: child.pid ?? 0,
    workerPids: () => startedPids(output()).filter((pid) => pid !== child.pid && isAlive(pid)),
    output,
    stop: () => {
      child.kill('SIGTERM');
      return closed;
    },
    // It does not wait for the end of the output: workers hold that open until they have ended as well.
    kill: () => endChild(child),
  };
  if (isReady) await reach(() => isReadyAt(gateway.opsUrl));
  return gateway;
}

/** A kept connection may be closed while a request is on its way, where the machine is busy: then it is asked again. */
async function isReadyAt(opsUrl: string): Promise<boolean> {
  try {
    return (await fetch(`${opsUrl}/readyz`)).ok;
  } catch {
    return false;
  }
}

/** Each replica logs that it starts, with its process id. */
function startedPids(output: string): readonly number[] {
  return [...output.matchAll(/"pid":(\d+),[^\n]*"msg":"starting"/g)].map(([, pid]) => Number(pid));
}

/** Whether there is such a process, a zombie included. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Runs the gateway until it ends by itself. */
export async function runGateway(
  environment: Readonly<Record<string, string>>,
  openFiles?: number,
): Promise<EndedProcess> {
  const { child, output } = spawnNode(GATEWAY, environment, { openFiles });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output: output() };
}

/** Runs a file with this environment and the PATH, and nothing else of the tests' own environment. */
export function spawnNode(
  file: string,
  environment: Readonly<Record<string, string>>,
  { args = [], openFiles, isOnTerminal = false }: Omit<StartOptions, 'isReady' | 'main'> = {},
): { readonly child: ChildProcess; readonly output: () => string } {
  // A shell sets the limit, and then runs the program in its own place, so that the process id stays the same.
  const [program, ...words] =
    openFiles === undefined
      ? [process.execPath, file, ...args]
      : ['/bin/sh', '-c', `ulimit -n ${openFiles} && exec "$0" "$@"`, process.execPath, file, ...args];
  const onTerminal = [
    '-qec',
    `exec ${[program, ...words].map((word) => `'${word}'`).join(' ')}`,
    '/dev/null',
  ];
  const child = spawn(isOnTerminal ? 'script' : program, isOnTerminal ? onTerminal : words, {
    env: {
      PATH: process.env.PATH ?? '',
      HOST: '127.0.0.1',
      PORT: '0',
      OPS_PORT: '0',
      ...((file.startsWith(SOURCE) || file === GATEWAY) && { NODE_COMPILE_CACHE: COMPILED_DIRECTORY }),
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return { child, output: outputOf(child) };
}
