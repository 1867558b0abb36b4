import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { listenOnLoopback } from '../../support/listen-on-loopback.ts';
import type { ReceivedRequest } from './event-faults.ts';

/** How a receiver treats its requests. */
export type ReceiverMood = 'well' | 'rejecting' | 'hanging' | 'resetting';

/** A receiver of webhooks that can be made to fail. */
export class ChaosReceiver {
  /** Requests, with those that were sent again. */
  readonly received: ReceivedRequest[] = [];
  #mood: ReceiverMood = 'well';
  readonly #hanging = new Set<ServerResponse>();
  readonly #server = createServer(async (req, res) => {
    if (this.#mood === 'resetting') {
      req.socket.resetAndDestroy();
      return;
    }
    const body = await text(req).catch(() => undefined);
    if (body === undefined) return;
    const isAccepted = this.#mood === 'well';
    this.received.push({ webhookId: String(req.headers['webhook-id']), body, isAccepted });
    if (this.#mood === 'hanging') this.#hanging.add(res);
    else if (this.#mood === 'rejecting') res.writeHead(500).end();
    else res.writeHead(204).end();
  });

  static async start(): Promise<ChaosReceiver> {
    const receiver = new ChaosReceiver();
    await listenOnLoopback(receiver.#server);
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/in`;
  }

  setMood(mood: ReceiverMood): void {
    this.#mood = mood;
    for (const res of this.#hanging) res.destroy();
    this.#hanging.clear();
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close').catch(() => {});
  }
}
