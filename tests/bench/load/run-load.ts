import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { BenchCase } from '../cases.ts';
import { keysFile } from '../setup/candidate.ts';
import type { World } from '../setup/world.ts';
import { runFixedRate } from './fixed-rate.ts';

const SCRIPT = resolve(import.meta.dirname, 'load.lua');

/** Keep-alive connections of a load that leaves the gateway no pause. */
export const CONNECTIONS = 64;
/** A load ends by itself so long after its time, whatever becomes of the bench. Seconds. */
const LONGEST_OVERRUN = 60;

/** A load against one port. */
export interface Load {
  readonly benchCase: BenchCase;
  readonly port: number;
  readonly seconds: number;
  /** Those of the case by default. */
  readonly connections?: number;
  /** Mean of the random pause before each request of a connection; none by default. Milliseconds. */
  readonly pauseMs?: number;
  /** Not the requests, but the calls of another gateway that asks whether to forward them. */
  readonly asks?: boolean;
}

/** What the clients saw of a load. */
export interface LoadResult {
  readonly requests: number;
  readonly durationUs: number;
  /** Responds with a status of 400 or more. */
  readonly limited: number;
  /** Connections that failed, and responds with that did not come. */
  readonly broken: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly p999Us: number;
}

/** What wrk sends, and where to. */
export interface WrkLoad extends Omit<Load, 'benchCase' | 'connections'> {
  /** Of keys, as `keysFile` writes them: each request takes one of its lines by chance. */
  readonly file: string;
  readonly benchCase: Pick<BenchCase, 'method' | 'path' | 'body' | 'closePercent'>;
  readonly connections: number;
}

/** Runs a load to its end. Requests in flight at the end get a response, but are not in the result. */
export async function runLoad(world: World, load: Load): Promise<LoadResult> {
  const { benchCase, connections = benchCase.connections ?? CONNECTIONS } = load;
  if (benchCase.ratePerSecond !== undefined) return atFixedRate(world, load, benchCase.ratePerSecond);
  const file = join(world.directory, `keys-${benchCase.keys}`);
  await writeFile(file, keysFile(world.keys[benchCase.keys]));
  return runWrk(world.programs.wrk, { ...load, file, connections });
}

/** Runs wrk to its end. Requests in flight at the end get a response, but are not in the result. */
export async function runWrk(wrk: string, load: WrkLoad): Promise<LoadResult> {
  const { benchCase, connections, pauseMs = 0 } = load;
  const child = spawn(
    wrk,
    [
      ...[
        '-t',
        '1',
        '-c',
        String(connections),
        '-d',
        `${Math.ceil(load.seconds) + LONGEST_OVERRUN}s`,
        '--timeout',
        '10s',
        '-s',
        SCRIPT,
      ],
      ...[`http://127.0.0.1:${load.port}`, '--', load.file, benchCase.method, benchCase.path],
      ...[benchCase.body, String(benchCase.closePercent), String(pauseMs)],
      ...(load.asks === true ? ['asks'] : []),
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  // A bench that is ended early takes the load with it.
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  let output = '';
  let end: NodeJS.Timeout | undefined;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    // wrk knows only whole seconds; a signal ends it early, within a tenth of one, and it measures how long it ran. It writes this line just before it goes to
    // sleep for that time: a signal that comes earlier ends its threads, but not its sleep.
    if (output.includes(' connections\n'))
      end ??= setTimeout(() => child.kill('SIGINT'), load.seconds * 1000);
  });
  const [code, signal] = await once(child, 'close');
  clearTimeout(end);
  process.off('exit', kill);
  const line = /^BENCH (.*)$/m.exec(output)?.[1];
  if (line === undefined) throw new Error(`wrk wrote no result (${signal ?? code}):\n${output}`);
  return JSON.parse(line) as LoadResult;
}

async function atFixedRate(
  world: World,
  { benchCase, port, seconds }: Load,
  ratePerSecond: number,
): Promise<LoadResult> {
  const { keys, path } = benchCase;
  const { latenciesMs, ...counts } = await runFixedRate({
    ...{ port, keys: world.keys[keys], path, ratePerSecond, seconds },
  });
  const atUs = (share: number) => 1000 * (latenciesMs[Math.ceil(share * latenciesMs.length) - 1] ?? 0);
  return { ...counts, p50Us: atUs(0.5), p99Us: atUs(0.99), p999Us: atUs(0.999) };
}
