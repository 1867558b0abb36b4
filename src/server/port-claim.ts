import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Whether several sockets may listen on one port, which the system spreads connections over. Elsewhere there is a single one, which Node's
 * cluster module shares.
 */
export const HAS_REUSE_PORT = process.platform === 'linux';

/** Gives a claim back. Resolves when another gateway may have the port. */
export type Release = () => Promise<void>;

/**
 * Claims a port for this gateway, until it is given back or the process ends. Rejects with `EADDRINUSE` when another gateway has claimed it,
 * or when anything listens on it. Port 0 is never taken.
 *
 * Sockets that share ports would bind beside those of another gateway of the same user. To look whether the port is free does not keep
 * out one that looks at the same instant: the claim is the name of an abstract Unix socket, which only one process of the
 * machine, or container, can have.
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
    // Where a sandbox forbids Unix sockets, the look at the port has to do.
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
