import { spawn } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { until } from '../../support/until.ts';
import { CANDIDATE_CORE } from '../setup/pinned-process.ts';
import { REPOSITORY, tollgateEnvironment } from '../setup/tollgate.ts';
import type { World } from '../setup/world.ts';
import { median } from './statistics.ts';

/** What Node compiled is kept here from the end of the first process on. */
const COMPILED = resolve(REPOSITORY, 'node_modules/.cache/tollgate');

/** Milliseconds from `npm start` to the first `/readyz` that says yes, with both stores up: medians of some starts. */
export interface StartUp {
  /** Where nothing is compiled yet. */
  readonly firstMs: number;
  readonly laterMs: number;
}

/** Starts a replica twice as often as `starts` says: each first one is followed by a later one. */
export async function measureStartUp(world: World, starts: number): Promise<StartUp> {
  const first: number[] = [];
  const later: number[] = [];
  for (let start = 0; start < starts; start += 1) {
    // A replica that is just ending may still be writing there.
    await rm(COMPILED, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
    first.push(await startOnce(world));
    later.push(await startOnce(world));
  }
  return { firstMs: median(first), laterMs: median(later) };
}

async function startOnce(world: World): Promise<number> {
  const opsPort = await freePort();
  const startedAt = performance.now();
  // A new process group: npm starts a shell that starts node.
  const child = spawn(world.programs.taskset, ['-c', String(CANDIDATE_CORE), 'npm', 'start'], {
    cwd: REPOSITORY,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: world.directory,
      ...tollgateEnvironment(world.replica),
      OPS_PORT: String(opsPort),
    },
    stdio: 'ignore',
    detached: true,
  });
  try {
    await until(() => isReady(opsPort), { timeoutMs: 30_000 });
    return performance.now() - startedAt;
  } finally {
    // npm may end before the replica, which writes down what it compiled when it ends.
    if (child.pid !== undefined) await endGroup(child.pid);
  }
}

async function endGroup(leader: number): Promise<void> {
  if (!signalGroup(leader, 'SIGTERM')) return;
  await until(async () => !signalGroup(leader, 0), { timeoutMs: 30_000 });
}

/** False when no process is left in the group. */
function signalGroup(leader: number, signal: 'SIGTERM' | 0): boolean {
  try {
    return process.kill(-leader, signal);
  } catch {
    return false;
  }
}

function isReady(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}
