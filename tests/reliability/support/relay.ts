import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A TCP relay in front of a server, to break what lies between it and its clients. */
export interface Relay {
  readonly port: number;
  /** Nothing of what the server says gets through any more; what clients say does. */
  dropReplies(): void;
  /** What the server says gets through so many milliseconds later. */
  delayReplies(ms: number): void;
  /** Cuts all connections and refuses new ones. */
  refuse(): Promise<void>;
  /** Everything gets through. Connections whose replies were dropped are cut: they would be out of step. */
  heal(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a relay to a loopback port on a port of its own. */
export async function startRelay(targetPort: number): Promise<Relay> {
  const sockets = new Set<Socket>();
  let delayMs = 0;
  let isDropping = false;
  const relay = (client: Socket): void => {
    const server = connect(targetPort, '127.0.0.1');
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.once('close', () => {
        sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    client.on('data', (bytes) => server.write(bytes));
    server.on('data', (bytes) => {
      if (isDropping) return;
      if (delayMs === 0) client.write(bytes);
      else setTimeout(() => client.writable && client.write(bytes), delayMs);
    });
  };
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  let listener = await listen(relay, 0);
  const port = (listener.address() as AddressInfo).port;
  const close = async (): Promise<void> => {
    if (!listener.listening) return;
    const closed = once(listener, 'close');
    listener.close();
    cut();
    await closed;
  };
  return {
    port,
    dropReplies: () => {
      isDropping = true;
    },
    delayReplies: (ms) => {
      delayMs = ms;
    },
    refuse: close,
    heal: async () => {
      if (isDropping || delayMs > 0) cut();
      isDropping = false;
      delayMs = 0;
      if (!listener.listening) listener = await listen(relay, port);
    },
    stop: close,
  };
}

async function listen(relay: (client: Socket) => void, port: number): Promise<Server> {
  const server = createServer(relay).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
