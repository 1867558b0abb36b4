import { connect } from 'node:net';

/**
 * Opens a connection to the backend and closes it, without a request. Resolves when it is open; rejects with the system's error, or with one that says
 * that it timed out.
 */
export function probeConnection(url: URL, timeoutMs: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const socket = connect({ host, port: Number(url.port) || (url.protocol === 'https:' ? 443 : 80) });
  const timer = setTimeout(() => socket.destroy(new Error('The connection timed out.')), timeoutMs);
  socket.once('connect', () => {
    resolve();
    socket.destroy();
  });
  socket.once('error', reject);
  socket.once('close', () => clearTimeout(timer));
  return promise;
}
