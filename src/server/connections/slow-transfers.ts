import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { MinimumRate } from '../../http/minimum-body-rate.ts';
import { bytesTaken, lastRequest, ownerOf, responseDue } from '../../http/node-internals.ts';

/** A body that is on its way. */
interface Transfer {
  /** What must keep the rate: a request, or all responses of a connection. */
  readonly of: IncomingMessage | Socket;
  /** Bytes that its connection has carried in the direction of the body. */
  readonly bytes: number;
}

/** Which transfers are watched, and what happens to slow ones. */
export interface SlowTransferOptions {
  readonly rate: MinimumRate;
  readonly connections: Iterable<Socket>;
  /** The body to be watched on a connection; undefined = none. */
  readonly transferOn: (socket: Socket) => Transfer | undefined;
  readonly onTooSlow: (socket: Socket) => void;
}

/**
 * Ends slow transfers between a client and the gateway itself. Proxied bodies have a `RateWatch` instead, which knows when the backend
 * holds them back. All connections are checked once in a window, so that a request costs nothing.
 */
export class SlowTransfers {
  readonly #options: SlowTransferOptions;
  #known = new Map<Socket, Transfer>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SlowTransferOptions) {
    this.#options = options;
  }

  start(): void {
    const { bytesPerSecond, windowMs } = this.#options.rate;
    if (bytesPerSecond === 0) return;
    // One turn later, so that bytes that arrived while the process was busy are read and counted first.
    this.#timer = setInterval(() => setImmediate(() => this.#look()), windowMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const { rate, connections, transferOn, onTooSlow } = this.#options;
    const before = this.#known;
    const now = new Map<Socket, Transfer>();
    for (const socket of connections) {
      const transfer = transferOn(socket);
      if (transfer === undefined) continue;
      const last = before.get(socket);
      const passed = last?.of === transfer.of ? transfer.bytes - last.bytes : Number.POSITIVE_INFINITY;
      if (passed * 1000 < rate.bytesPerSecond * rate.windowMs) onTooSlow(socket);
      else now.set(socket, transfer);
    }
    this.#known = now;
  }
}

/** A request body that the gateway itself reads: that of a request that is not proxied, or the rest of a body after its response. */
export function uploadOn(socket: Socket): Transfer | undefined {
  const req = lastRequest(socket);
  if (req === undefined || req.complete || req.readableFlowing !== true) return undefined;
  const due = responseDue(socket);
  if (due !== undefined && (due.req !== req || ownerOf(due) !== undefined)) return undefined;
  return { of: req, bytes: socket.bytesRead };
}

/**
 * A response that its client is slow to take: one of the gateway itself, or the rest of a proxied one after the backend has finished. All
 * responses of a connection count together, because a client that takes small pipelined responses one by one keeps all the waiting
 * requests in memory.
 */
export function downloadOn(socket: Socket): Transfer | undefined {
  if (socket.writableLength === 0) return undefined;
  const due = responseDue(socket);
  if (due === undefined || (ownerOf(due) !== undefined && !due.writableEnded)) return undefined;
  return { of: socket, bytes: bytesTaken(socket) };
}
