import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll } from '@jest/globals';
import { until } from '../../support/until.ts';

/** A request of a webhook. */
interface ReceivedRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** An endpoint of webhooks on this machine. It responds with 204. */
export interface Receiver {
  readonly url: string;
  readonly port: number;
  /** All requests so far, once there are `count`. */
  received(count: number): Promise<readonly ReceivedRequest[]>;
}

/** Gives the tests of the calling file one receiver, and closes it after them. */
export function withReceiver(): Receiver {
  const requests: ReceivedRequest[] = [];
  let server: Server | undefined;
  beforeAll(async () => {
    server = createServer(async (req, res) => {
      requests.push({ headers: req.headers as Record<string, string>, body: await text(req) });
      res.writeHead(204).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(() => {
    server?.closeAllConnections();
    server?.close();
  });
  const portOf = (): number => (server?.address() as AddressInfo | undefined)?.port ?? 0;
  return {
    get url() {
      return `http://127.0.0.1:${portOf()}/in`;
    },
    get port() {
      return portOf();
    },
    async received(count) {
      await until(() => requests.length >= count);
      return requests;
    },
  };
}
