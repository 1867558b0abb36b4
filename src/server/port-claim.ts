import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Whether several sockets may listen on one port, with the system spreading connections over them. On other platforms there is a single
 * socket, which Node's cluster module shares.
 */
export const HAS_REUSE_PORT = process.platform === 'linux';

/** Gives a claim back. Resolves when another gateway may have the port. */
export type Release = () => Promise<void>;

/**
 * Claims a port for this gateway, until it is given back or the process ends. Rejects with `EADDRINUSE` when another gateway has claimed
 * the port, or when anything listens on it. Port 0 is never taken.
 *
 * With `reusePort`, two gateways of one user could listen on the same port. Checking first whether the port is free is a race between
 * them, so the claim is an abstract Unix socket, whose name only one process of the machine or container can have.
 */
export async function claimPort(port: number, host: string): Promise<Release> {
  if (port === 0) return async () => {};
  const release = HAS_REUSE_PORT ? await claimName(`tollgate ${host}:${port}`) : async () => {};
  try {
    await (await bind({ port, host }))();
  } catch (error) {
    await release();
    throw error;
  }
  return release;
}

async function claimName(name: string): Promise<Release> {
  try {
    return await bind({ path: `\0${name}` });
  } catch (error) {
    // If a sandbox forbids Unix sockets, the check of the port must suffice.
    if (error instanceof Error && 'code' in error && error.code !== 'EADDRINUSE') return async () => {};
    throw error;
  }
}

async function bind(
  place: { readonly port: number; readonly host: string } | { readonly path: string },
): Promise<Release> {
  const server = createServer((socket) => socket.destroy());
  await once(server.unref().listen(place), 'listening');
  return async () => {
    await new Promise((resolve) => server.close(resolve));
  };
}
