import { isIP, connect as openSocket } from 'node:net';
import { connect as openTls } from 'node:tls';

/**
 * Opens a connection to the backend and closes it, without a request. Resolves when it is open: with `https` that means that the
 * certificate is trusted. Rejects with the error of the system or of TLS, or with an error after the timeout.
 */
export function probeConnection(url: URL, timeoutMs: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const isTls = url.protocol === 'https:';
  const port = Number(url.port) || (isTls ? 443 : 80);
  const socket = isTls
    ? openTls({ host, port, ...(isIP(host) === 0 && { servername: host }) })
    : openSocket({ host, port });
  const timer = setTimeout(() => socket.destroy(new Error('The connection timed out.')), timeoutMs);
  socket.once(isTls ? 'secureConnect' : 'connect', () => {
    resolve();
    socket.destroy();
  });
  socket.once('error', reject);
  socket.once('close', () => clearTimeout(timer));
  return promise;
}
