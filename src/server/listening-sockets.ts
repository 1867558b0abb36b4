import type { Server } from 'node:http';
import {
  type AddressInfo,
  createServer,
  type ListenOptions,
  type Socket,
  type Server as TcpServer,
} from 'node:net';
import { claimPort, HAS_REUSE_PORT, type Release } from './port-claim.ts';

/** Where a server listens. */
export interface ListenPlace {
  /** 0: the system chooses one. */
  readonly port: number;
  readonly host: string;
  /** Other processes listen on the same port: the system spreads the connections over them. */
  readonly sharesPort: boolean;
}

/**
 * Node accepts one connection of each listening socket in a turn of its event loop. With a single socket a busy process accepts so few
 * that the socket's queue overflows, and a client waits for seconds until its system sends the SYN again.
 */
const SOCKETS = 64;
/** Backlog of each socket. Short, because its last connection waits for as many turns; in all more than the usual 4096 of a port. */
const BACKLOG = 128;

/** Listening sockets of each port. */
export const SOCKETS_OF_A_PORT = HAS_REUSE_PORT ? SOCKETS : 1;

/** The sockets that listen on a server's port. The system spreads connections over them. */
export class ListeningSockets {
  readonly #server: Server;
  /** All sockets but the first, which is the server's own. Their connections are handed to the server. */
  readonly #others: readonly TcpServer[];
  #release: Release | undefined;

  constructor(server: Server) {
    this.#server = server;
    // The options are those with which Node's HTTP server makes its own socket.
    const options = { allowHalfOpen: true, noDelay: true };
    this.#others = Array.from({ length: SOCKETS_OF_A_PORT - 1 }, () =>
      createServer(options, (socket: Socket) => server.emit('connection', socket)),
    );
  }

  /** Resolves with the address of the port. Rejects when the port is not available; then nothing listens. */
  async listen({ port, host, sharesPort }: ListenPlace): Promise<AddressInfo> {
    if (HAS_REUSE_PORT && !sharesPort) this.#release = await claimPort(port, host);
    try {
      const first = HAS_REUSE_PORT ? { port, host, reusePort: true, backlog: BACKLOG } : { port, host };
      const address = await listen(this.#server, first);
      await Promise.all(this.#others.map((other) => listen(other, { ...first, port: address.port })));
      return address;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** Accepts no more connections. Resolves when those accepted have closed. */
  async close(): Promise<void> {
    await Promise.all([this.#release?.(), ...[this.#server, ...this.#others].map(close)]);
  }
}

function listen(server: TcpServer, options: ListenOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('The server has no address.'));
      else resolve(address);
    });
  });
}

function close(server: TcpServer): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
