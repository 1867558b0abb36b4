import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { cutConnection } from '../http/connections/cut-connection.ts';
import { lingerAfterResponse } from '../http/connections/lingering-close.ts';
import type { RawHeadResponse } from '../http/node-internals.ts';

/** A connection with this many waiting pipelined requests is paused. Bytes already read are still parsed: a thousand requests and more. */
const MOST_WAITING = 16;
/** Most requests that wait on a port, 2 to 4 kB each. When it is reached, a connection that exceeds `MOST_WAITING` is closed. */
const MOST_WAITING_OF_ALL = 50_000;
/** A request whose head has more characters counts as several. */
const HEAD_OF_ONE = 2048;
/** How much of a paused connection is read, only to notice that its client has left. Bytes; the last chunk may exceed it by 64 KiB. */
const PROBED_BYTES = 192 * 1024;
/** The same for all paused connections of a port together. */
const PROBED_BYTES_OF_ALL = 16 * 1024 * 1024;

/** What waits on a connection. */
interface Waiting {
  count: number;
  /** Bytes that had been read when its first request began to wait; updated when the connection is paused. */
  bytesBefore: number;
  /** One more chunk is read although the connection is paused. */
  isProbed: boolean;
}

/** Counts the pipelined requests that wait, and keeps them within bounds. */
export class WaitingRequests {
  readonly #watched = new WeakSet<Socket>();
  readonly #waiting = new Map<Socket, Waiting>();
  readonly #onFlooded: () => void;
  readonly #pausedHeads: PausedHeads;
  #all = 0;

  /** `onFlooded` is called for each connection that is closed because too many wait. `headMs` is the time for a head. */
  constructor(onFlooded: () => void, headMs: number) {
    this.#onFlooded = onFlooded;
    this.#pausedHeads = new PausedHeads(headMs);
  }

  /** False where the connection is closed, or is closed now because too many wait. */
  add(req: IncomingMessage): boolean {
    const { socket } = req;
    // The rest of a chunk is parsed even after its connection was closed.
    if (socket.destroyed) return false;
    const waiting = this.#waiting.get(socket) ?? this.#start(socket);
    const before = waiting.count;
    const weight = weightOf(req);
    if (before + weight > MOST_WAITING && this.#all >= MOST_WAITING_OF_ALL) {
      cutConnection(socket);
      this.#onFlooded();
      return false;
    }
    waiting.count += weight;
    this.#all += weight;
    const isNowFull = before < MOST_WAITING && waiting.count >= MOST_WAITING;
    // Requests may wait without a pause: bytes read before the pause do not count as read during it.
    if (isNowFull) waiting.bytesBefore = socket.bytesRead;
    if (isNowFull || (waiting.isProbed && waiting.count >= MOST_WAITING)) {
      waiting.isProbed = false;
      process.nextTick(() => this.#pauseFlooded(socket));
    }
    return true;
  }

  delete(req: IncomingMessage): void {
    const { socket } = req;
    const waiting = this.#waiting.get(socket);
    if (waiting === undefined) return;
    const weight = weightOf(req);
    waiting.count -= weight;
    this.#all -= weight;
    if (waiting.count > 0) return;
    this.#waiting.delete(socket);
    socket.resume();
  }

  /** To be called for each head that is complete. */
  noteHead(socket: Socket): void {
    this.#pausedHeads.delete(socket);
  }

  /**
   * To be called when Node's timeout for a head is over. If the connection was paused meanwhile, returns true, and calls `onTimeout` when
   * the rest of the head does not come in time once it is read.
   */
  extendHead(socket: Socket, onTimeout: () => void): boolean {
    // Node itself pauses a connection that does not take a response.
    if (socket.isPaused()) {
      this.#watch(socket);
      this.#pausedHeads.pause(socket);
    }
    return this.#pausedHeads.extend(socket, onTimeout);
  }

  /**
   * Reads one more chunk from each paused connection, up to a bound and only while there is room for its requests: that a client has
   * left shows only after all the bytes that it has sent.
   */
  async readOn(): Promise<boolean> {
    const paused = [...this.#waiting].filter(([socket]) => socket.isPaused());
    let readOfAll = paused.reduce((sum, [socket, waiting]) => sum + readSince(socket, waiting), 0);
    for (const [socket, waiting] of paused) {
      if (readOfAll >= PROBED_BYTES_OF_ALL) break;
      const before = socket.bytesRead;
      this.#probe(socket, waiting);
      // What was read is counted before more is read.
      await nextTurn();
      readOfAll += socket.bytesRead - before;
    }
    return true;
  }

  #probe(socket: Socket, waiting: Waiting): void {
    // It may have been closed or resumed while the others were probed.
    if (!socket.isPaused() || this.#waiting.get(socket) !== waiting) return;
    const isWithinBounds = this.#all < MOST_WAITING_OF_ALL / 2 && readSince(socket, waiting) < PROBED_BYTES;
    // If bytes are being sent to the client, their failure shows that it has left.
    if (!isWithinBounds || socket.writableLength > 0) return;
    waiting.isProbed = true;
    socket.resume();
  }

  #start(socket: Socket): Waiting {
    const waiting = { count: 0, bytesBefore: socket.bytesRead, isProbed: false };
    this.#waiting.set(socket, waiting);
    this.#watch(socket);
    return waiting;
  }

  #watch(socket: Socket): void {
    if (this.#watched.has(socket)) return;
    this.#watched.add(socket);
    socket.once('close', () => {
      this.#all -= this.#waiting.get(socket)?.count ?? 0;
      this.#waiting.delete(socket);
      this.#pausedHeads.delete(socket);
    });
    // Node resumes the socket at the end of each request that it parses, and when a large response has been written. Each time it is
    // paused again before anything is read.
    socket.on('resume', () => {
      this.#pauseFlooded(socket);
      if (!socket.isPaused()) this.#pausedHeads.resume(socket);
    });
  }

  #pauseFlooded(socket: Socket): void {
    const waiting = this.#waiting.get(socket);
    if (waiting === undefined || waiting.count < MOST_WAITING || waiting.isProbed) return;
    socket.pause();
    this.#pausedHeads.pause(socket);
  }
}

interface PausedHead {
  /** Ends its time; undefined while the connection is paused. */
  timer: NodeJS.Timeout | undefined;
  /** Set when Node's timeout for the head is over. */
  onTimeout: (() => void) | undefined;
}

/**
 * Times the heads of connections that were paused. Node's timeout for a head goes on while its rest is not read, and expires only once for
 * each head: so the rest gets the time of a whole head from when the connection is resumed, and no more.
 */
class PausedHeads {
  readonly #headMs: number;
  /** By connection: its next head may have been read in part. */
  readonly #heads = new Map<Socket, PausedHead>();

  constructor(headMs: number) {
    this.#headMs = headMs;
  }

  /** To be called when a connection is paused. */
  pause(socket: Socket): void {
    if (!this.#heads.has(socket)) this.#heads.set(socket, { timer: undefined, onTimeout: undefined });
  }

  /** To be called when a connection is read on. */
  resume(socket: Socket): void {
    const head = this.#heads.get(socket);
    if (head === undefined || head.timer !== undefined) return;
    head.timer = setTimeout(() => {
      this.#heads.delete(socket);
      head.onTimeout?.();
    }, this.#headMs);
  }

  /** To be called when the next head is complete, and when the connection is closed. */
  delete(socket: Socket): void {
    const head = this.#heads.get(socket);
    if (head === undefined) return;
    clearTimeout(head.timer);
    this.#heads.delete(socket);
  }

  /** To be called when Node's timeout for a head is over. False if this head has no more time; otherwise `onTimeout` is called then. */
  extend(socket: Socket, onTimeout: () => void): boolean {
    const head = this.#heads.get(socket);
    if (head === undefined) return false;
    head.onTimeout = onTimeout;
    return true;
  }
}

/** What was read of a connection while it was paused. Bytes. */
function readSince(socket: Socket, { bytesBefore }: Waiting): number {
  return socket.bytesRead - bytesBefore;
}

/** How many requests a request counts as. */
function weightOf({ url = '', rawHeaders }: IncomingMessage): number {
  const characters = rawHeaders.reduce((sum, { length }) => sum + length, url.length);
  return 1 + Math.floor(characters / HEAD_OF_ONE);
}

type Serve = (req: IncomingMessage, res: RawHeadResponse) => void;

/**
 * Serves the requests of a connection one after the other, in their order: Node hands them out as they arrive, but only safe ones might
 * be served side by side (RFC 9112 section 9.3.2). Each pipelined request waits for a turn of the event loop, so that a connection with
 * thousands of them in its buffer is served no more often than a connection that sends one at a time.
 */
export function serveInOrder(serve: Serve, waiting: WaitingRequests): Serve {
  const serveNext = (req: IncomingMessage, res: RawHeadResponse): void => {
    // The client may have left while the request waited: its response has closed already, and nothing would end it again.
    if (req.socket.destroyed) return;
    waiting.delete(req);
    if (!res.destroyed) serve(req, res);
  };
  return (req, res) => {
    waiting.noteHead(req.socket);
    // Node gives a response its socket once those before it are written.
    if (res.socket !== null) serve(req, res);
    else if (waiting.add(req)) {
      // If an earlier response closes the connection, this client is probably still sending: a reset could destroy that response.
      lingerAfterResponse(req.socket);
      res.once('socket', () => setImmediate(serveNext, req, res));
    }
  };
}
