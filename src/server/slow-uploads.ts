import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { MinimumRate } from '../http/minimum-rate.ts';
import { lastRequest, responseDue } from '../http/node-internals.ts';
import { RawHeadResponse } from '../http/raw-head-response.ts';

/** A body that was on its way at the last look. */
interface Upload {
  readonly req: IncomingMessage;
  /** What its connection had carried. */
  readonly bytesRead: number;
}

/**
 * Ends uploads that the gateway itself reads and that come below a minimum rate: bodies of requests that are not proxied, and what is
 * left of a body after its response. Proxied bodies have a watch that knows when the backend holds them up. All connections are looked
 * at once in a window, so that a request costs nothing.
 */
export class SlowUploads {
  readonly #rate: MinimumRate;
  readonly #connections: Iterable<Socket>;
  readonly #onTooSlow: (socket: Socket) => void;
  #known = new Map<Socket, Upload>();
  #timer: NodeJS.Timeout | undefined;

  constructor(rate: MinimumRate, connections: Iterable<Socket>, onTooSlow: (socket: Socket) => void) {
    this.#rate = rate;
    this.#connections = connections;
    this.#onTooSlow = onTooSlow;
  }

  start(): void {
    if (this.#rate.bytesPerSecond === 0) return;
    // One turn later, so that what arrived while the process was busy is read before it is missed.
    this.#timer = setInterval(() => setImmediate(() => this.#look()), this.#rate.windowMs);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const { bytesPerSecond, windowMs } = this.#rate;
    const before = this.#known;
    const now = new Map<Socket, Upload>();
    for (const socket of this.#connections) {
      const req = requestBeingRead(socket);
      if (req === undefined) continue;
      const { bytesRead } = socket;
      const upload = before.get(socket);
      const passed = upload?.req === req ? bytesRead - upload.bytesRead : Number.POSITIVE_INFINITY;
      if (passed * 1000 < bytesPerSecond * windowMs) this.#onTooSlow(socket);
      else now.set(socket, { req, bytesRead });
    }
    this.#known = now;
  }
}

/** The request of a connection whose body the gateway reads now; undefined where there is none, or where an exchange takes care of it. */
function requestBeingRead(socket: Socket): IncomingMessage | undefined {
  const req = lastRequest(socket);
  if (req === undefined || req.complete || req.readableFlowing !== true) return undefined;
  const due = responseDue(socket);
  if (due === undefined) return req;
  return due.req === req && !(due instanceof RawHeadResponse && due.owner !== undefined) ? req : undefined;
}
