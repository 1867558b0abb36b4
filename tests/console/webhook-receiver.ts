import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';

/** A request of a webhook. */
interface ReceivedEvent {
  readonly path: string;
  readonly id: string;
  readonly body: string;
}

/** An endpoint for webhooks on this machine. Below `/broken` it responds with 503, otherwise with 204. */
export interface WebhookReceiver {
  readonly url: string;
  readonly received: readonly ReceivedEvent[];
  stop(): Promise<void>;
}

/** With these settings a gateway sends to it. */
export const RECEIVER_SETTINGS = {
  WEBHOOK_ALLOW_HTTP: 'true',
  WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32',
} as const;

export async function startReceiver(): Promise<WebhookReceiver> {
  const received: ReceivedEvent[] = [];
  const server = createServer(async (req, res) => {
    const path = req.url ?? '';
    received.push({ path, id: String(req.headers['webhook-id']), body: await text(req) });
    res.writeHead(path.startsWith('/broken') ? 503 : 204).end();
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
