import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A way to Redis on which responds get lost. */
export interface ReplyLosingProxy {
  readonly url: string;
  /** Lets this many chunks of responses through, then cuts the connection instead of passing on the next. Once. */
  loseReplyAfter(chunks: number): void;
  close(): Promise<void>;
}

export async function startReplyLosingProxy(redisPort: number): Promise<ReplyLosingProxy> {
  const sockets = new Set<Socket>();
  let left = Number.POSITIVE_INFINITY;
  const server = createServer((client) => {
    const redis = connect(redisPort, '127.0.0.1');
    for (const socket of [client, redis]) {
      sockets.add(socket);
      socket
        .on('error', () => {})
        .on('close', () => {
          sockets.delete(socket);
          client.destroy();
          redis.destroy();
        });
    }
    client.on('data', (data) => void redis.write(data));
    redis.on('data', (data) => {
      left -= 1;
      if (left >= 0) {
        client.write(data);
        return;
      }
      left = Number.POSITIVE_INFINITY;
      client.destroy();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    loseReplyAfter: (chunks) => {
      left = chunks;
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
