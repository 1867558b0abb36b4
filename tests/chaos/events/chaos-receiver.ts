import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** How a receiver treats its requests. */
export type ReceiverMood = 'well' | 'rejecting' | 'hanging' | 'resetting';

/** What the oracle reads of an event. */
export interface ReceivedEvent {
  readonly id: string;
  readonly type: string;
  readonly subject: string;
  // biome-ignore lint/suspicious/noExplicitAny: it differs by type
  readonly data: any;
}

/** A receiver of webhooks that can be made to fail. */
export class ChaosReceiver {
  /** The events of each delivery that was accepted, by `webhook-id`. */
  readonly accepted = new Map<string, readonly ReceivedEvent[]>();
  /** Requests, with those that were sent again. */
  requests = 0;
  #mood: ReceiverMood = 'well';
  readonly #hanging = new Set<ServerResponse>();
  readonly #server = createServer(async (req, res) => {
    if (this.#mood === 'resetting') {
      req.socket.resetAndDestroy();
      return;
    }
    const body = await text(req).catch(() => undefined);
    if (body === undefined) return;
    this.requests += 1;
    if (this.#mood === 'hanging') this.#hanging.add(res);
    else if (this.#mood === 'rejecting') res.writeHead(500).end();
    else {
      this.accepted.set(String(req.headers['webhook-id']), [JSON.parse(body)].flat());
      res.writeHead(204).end();
    }
  });

  static async start(): Promise<ChaosReceiver> {
    const receiver = new ChaosReceiver();
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/in`;
  }

  get events(): readonly ReceivedEvent[] {
    return [...this.accepted.values()].flat();
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
