import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/** Below every range that systems take ports from by themselves: no outgoing connection and no listener on port 0 comes between. */
const FIRST = 10_000;
const BLOCKS = 220;
/** A process that listens on the first port of a block is the only one of all test runs that is given the others. */
const BLOCK_SIZE = 100;

let next = 0;
let end = 0;

/** A loopback port that was free a moment ago. No other process of the tests is given it. Throws when none is left. */
export async function freePort(): Promise<number> {
  for (;;) {
    if (next === end) await takeBlock();
    const port = next;
    next += 1;
    if (await isFree(port)) return port;
  }
}

async function takeBlock(): Promise<void> {
  const start = Math.floor(Math.random() * BLOCKS);
  for (let tried = 0; tried < BLOCKS; tried += 1) {
    const first = FIRST + ((start + tried) % BLOCKS) * BLOCK_SIZE;
    const guard = await listen(first);
    if (guard === undefined) continue;
    // Until the process ends.
    guard.unref();
    next = first + 1;
    end = first + BLOCK_SIZE;
    return;
  }
  throw new Error(`no free port from ${FIRST} to ${FIRST + BLOCKS * BLOCK_SIZE - 1}`);
}

/** Whether a loopback port can be listened on. */
export async function isFree(port: number): Promise<boolean> {
  const server = await listen(port);
  if (server === undefined) return false;
  await new Promise((closed) => server.close(closed));
  return true;
}

async function listen(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return server;
  } catch {
    return undefined;
  }
}
