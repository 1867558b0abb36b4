import { Cluster, type Redis } from 'ioredis';

/** Looks at a connection within the time after which it is closed. */
const LOOKS = 4;

/**
 * Closes a connection on which nothing has arrived for `timeoutMs` to a quarter more although something was written: its server vanished
 * without a sign. The client's own `socketTimeout` would set and clear a timer, and add and remove a listener, for each command.
 */
export function closeUnresponsive(redis: Redis | Cluster, timeoutMs: number): void {
  if (redis instanceof Cluster) redis.on('+node', (node: Redis) => watch(node, timeoutMs));
  else watch(redis, timeoutMs);
}

function watch(redis: Redis, timeoutMs: number): void {
  let seen = { stream: redis.stream, read: 0, written: 0 };
  // Looks and not milliseconds: after a time in which this process stood still there may be much to read.
  let inVain = 0;
  const timer = setInterval(() => {
    const { stream } = redis;
    // Undefined before the first attempt to connect.
    const { bytesRead: read = 0, bytesWritten: written = 0 } = stream ?? {};
    const isUnresponsive = stream === seen.stream && read === seen.read && written > seen.written;
    if (!isUnresponsive) {
      seen = { stream, read, written };
      inVain = 0;
      return;
    }
    inVain += 1;
    if (inVain > LOOKS) stream.destroy(new Error(`Nothing has arrived for ${timeoutMs} ms.`));
  }, timeoutMs / LOOKS);
  timer.unref();
  redis.once('end', () => clearInterval(timer));
}
