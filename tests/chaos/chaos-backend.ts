import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';

/** How a backend treats its requests. */
export type BackendMood = 'well' | 'rejecting' | 'hanging' | 'truncating';

/** A backend that can be made to fail. */
export interface ChaosBackend {
  readonly url: string;
  /** Requests already begun end as they began, except that nothing hangs for longer than the mood. */
  setMood(mood: BackendMood): void;
  stop(): Promise<void>;
}

/** Responds to each request after a few milliseconds, as long as it is well. After an upgrade it echoes. */
export async function startChaosBackend(): Promise<ChaosBackend> {
  let mood: BackendMood = 'well';
  const sockets = new Set<Socket>();
  const hanging = new Set<ServerResponse>();
  const server = createServer((req, res) => {
    req.resume();
    if (mood === 'hanging') {
      hanging.add(res);
      res.once('close', () => hanging.delete(res));
    } else if (mood === 'truncating') {
      res.writeHead(200, { 'content-length': 1000 });
      res.write('only the beginning', () => res.destroy());
    } else {
      setTimeout(() => res.end('ok'), 3);
    }
  });
  server.on('upgrade', (_, socket) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n');
    socket.pipe(socket);
  });
  server.on('connection', (socket) => {
    if (mood === 'rejecting') {
      socket.resetAndDestroy();
      return;
    }
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return {
    url: `http://127.0.0.1:${await listenOnLoopback(server)}`,
    setMood: (next) => {
      mood = next;
      if (mood === 'rejecting') for (const socket of sockets) socket.destroy();
      for (const res of hanging) res.end('at last');
    },
    stop: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close').catch(() => {});
    },
  };
}
