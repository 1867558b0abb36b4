import { Cluster, type Redis } from 'ioredis';

/** How often a connection is checked within the timeout after which it is closed. */
const LOOKS = 4;

/**
 * Closes a connection if something was written and nothing has arrived for `timeoutMs` (up to a quarter longer): its server is gone
 * without having closed it. The client's `socketTimeout` would set and clear a timer, and add and remove a listener, for each command.
 */
export function closeUnresponsive(redis: Redis | Cluster, timeoutMs: number): void {
  if (redis instanceof Cluster) redis.on('+node', (node: Redis) => watch(node, timeoutMs));
  else watch(redis, timeoutMs);
}

function watch(redis: Redis, timeoutMs: number): void {
  let seen = { stream: redis.stream, read: 0, written: 0 };
  // Counts checks, not milliseconds: after a pause of this process there may be replies that it has not read yet.
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
