import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listenOnLoopback } from '../../support/listen-on-loopback.ts';

/** A backend whose responses a test can hold back. */
export interface TestBackend {
  readonly url: string;
  /** Requests that were received. */
  received(): number;
  /** The targets of those requests, in the order of their arrival. */
  targets(): readonly string[];
  /** Requests that wait for `release`. */
  held(): number;
  /** From now on requests get no response. */
  hold(): void;
  /** Responds to the one that has been held for longest. */
  respondToOldest(): void;
  /** Responds to what was held, and everything from now on. */
  release(): void;
  stop(): Promise<void>;
}

/** Responses 200 to everything, at once by default, and 101 to upgrades. */
export async function startBackend(): Promise<TestBackend> {
  const targets: string[] = [];
  let isHolding = false;
  const held = new Set<ServerResponse>();
  const server = createServer((req: IncomingMessage, res: ServerResponse) => {
    targets.push(req.url ?? '');
    req.resume();
    if (!isHolding) {
      res.end('ok');
      return;
    }
    held.add(res);
    res.once('close', () => held.delete(res));
  });
  server.on('upgrade', (_req, socket) => {
    const end = () => socket.destroy();
    socket.on('error', end).on('end', end).resume();
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}`,
    received: () => targets.length,
    targets: () => targets,
    held: () => held.size,
    hold: () => {
      isHolding = true;
    },
    respondToOldest: () => {
      const [oldest] = held;
      if (oldest === undefined) throw new Error('no request is held');
      held.delete(oldest);
      oldest.end('ok');
    },
    release: () => {
      isHolding = false;
      for (const res of held) res.end('ok');
    },
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close').catch(() => {});
    },
  };
}
