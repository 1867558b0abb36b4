import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below every range that systems take ports from by themselves: no outgoing connection and no listener on port 0 comes between. */
const FIRST = 10_000;
/** A part of the range for each process of a test run, so that two of them are not given one port. */
const PARTS = 5;
const PART_SIZE = 4_400;
const part = FIRST + (Number(process.env.JEST_WORKER_ID ?? '0') % PARTS) * PART_SIZE;

let next = Math.floor(Math.random() * PART_SIZE);

/** A loopback port that was free a moment ago. Not given again before thousands of others. Throws when none is left. */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < PART_SIZE; tried += 1) {
    const port = part + next;
    next = (next + 1) % PART_SIZE;
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port from ${part} to ${part + PART_SIZE - 1}`);
}

/** Whether a loopback port can be listened on. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  await new Promise((closed) => server.close(closed));
  return true;
}
