import type { Socket } from 'node:net';
import { responseDue } from '../../http/node-internals.ts';

/** A connection is looked at this often in the time for which it may be kept. */
const LOOKS = 8;

/** Which connections are watched, and for how long they are kept. */
export interface KeptConnectionsOptions {
  /** How long a connection is kept after a response without a further request. Milliseconds. */
  readonly keptForMs: number;
  /** Those whose last request was read completely, and on which no head has begun. */
  readonly betweenRequests: () => Iterable<Socket>;
}

/** What a look found out about a connection. */
interface Found {
  readonly bytesWritten: number;
  /** How many looks have found the same. */
  readonly looks: number;
}

/**
 * Closes connections whose clients send only line ends after a response. Node's parser skips those, so that no head begins whose time would
 * run out, but each one starts the socket's timer again, which `StalledClients` relies on. Here only a response counts.
 */
export class KeptConnections {
  readonly #options: KeptConnectionsOptions;
  #known = new Map<Socket, Found>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: KeptConnectionsOptions) {
    this.#options = options;
  }

  start(): void {
    // One turn later, so that requests that arrived while the process was busy are read first.
    this.#timer = setInterval(
      () => setImmediate(() => this.#look()),
      this.#options.keptForMs / LOOKS,
    ).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const before = this.#known;
    const now = new Map<Socket, Found>();
    for (const socket of this.#options.betweenRequests()) {
      // A request is being served, or its client has not taken all of the response yet.
      if (responseDue(socket) !== undefined || socket.writableLength > 0) continue;
      const { bytesWritten } = socket;
      const last = before.get(socket);
      const looks = last?.bytesWritten === bytesWritten ? last.looks + 1 : 0;
      if (looks === LOOKS) socket.destroy();
      else now.set(socket, { bytesWritten, looks });
    }
    this.#known = now;
  }
}
