import { Socket } from 'node:net';
import { buildConnector, Client, type Dispatcher } from 'undici';
import { renameContinue } from './interim-continue.ts';

/** How connections to the backend are made and kept. */
export interface BackendOptions {
  /** Scheme and authority; a path in it is put before each request's. */
  readonly url: URL;
  /** How long making a connection may take, TLS included. Milliseconds. */
  readonly connectTimeoutMs: number;
  /** How long the backend may be silent within a body. Milliseconds. */
  readonly bodyIdleMs: number;
  /** Certificates that may sign the backend's, in place of those that Node trusts. PEM. */
  readonly ca?: string;
}

/** An unused connection is closed after this time unless the backend's `Keep-Alive` says how long it keeps it: Node's servers, for one, keep 5 s. */
const IDLE_CONNECTION_MS = 4000;
/** How much earlier than the backend announces an unused connection is closed. */
const IDLE_MARGIN_MS = 1000;
const LONGEST_IDLE_MS = 600_000;
const HEAD_LIMIT_BYTES = 16 * 1024;

/** Makes the sockets of connections with the same options; they share the TLS sessions. */
export class BackendConnector {
  readonly connect: buildConnector.connector;
  /** Sockets that were made and opened. */
  opened = 0;

  constructor({ connectTimeoutMs, ca }: BackendOptions) {
    this.connect = buildConnector({
      allowH2: false,
      timeout: connectTimeoutMs,
      ...(ca === undefined ? {} : { ca }),
    });
  }
}

/**
 * One connection to the backend that carries one request at a time: an undici client with its socket watched, because what undici
 * tells of a failure does not say whether the connection had served before.
 */
export class BackendConnection {
  readonly #client: Client;
  /** The socket while it is being connected, which undici would go on with after `destroy`. */
  #connecting: Socket | undefined;
  /** Answers that the open socket has brought. */
  #served = 0;
  /** The socket failed while it was open, so that what ended with it may be cut short. */
  #isBroken = false;
  #awaitsHead = false;
  #hasBytes = false;
  #pieceOfHead: Buffer | undefined = undefined;
  #httpMinor: number | undefined = undefined;

  constructor(options: BackendOptions, connector: BackendConnector) {
    this.#client = new Client(options.url.origin, {
      pipelining: 1,
      maxHeaderSize: HEAD_LIMIT_BYTES,
      headersTimeout: 0, // the caller's deadline counts from the request's start
      bodyTimeout: options.bodyIdleMs,
      keepAliveTimeout: IDLE_CONNECTION_MS,
      keepAliveTimeoutThreshold: IDLE_MARGIN_MS,
      keepAliveMaxTimeout: LONGEST_IDLE_MS,
      connect: (target, connected) => {
        // Its type does not say so, but undici's connector returns the socket that it is connecting.
        const connecting: unknown = connector.connect(target, (...result) => {
          const [, socket] = result;
          this.#connecting = undefined;
          // undici's types say null, but it leaves the argument out when the connection fails.
          if (socket) {
            connector.opened += 1;
            this.#watch(socket);
          }
          connected(...result);
        });
        if (connecting instanceof Socket) this.#connecting = connecting;
      },
    });
  }

  /** Whether the request now being sent uses a socket that has brought an answer before. */
  get isReused(): boolean {
    return this.#served > 0;
  }

  /** Whether a byte came since the last request was sent. */
  get hasBytes(): boolean {
    return this.#hasBytes;
  }

  /** Minor version of the HTTP/1 in which the answer in progress is. Undefined: undici knows the protocol, but it is another. */
  get httpMinor(): number | undefined {
    return this.#httpMinor;
  }

  /** Whether the socket failed (a reset, for one), as opposed to being closed in order. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** False once `destroy` was called: it takes no more requests. */
  get isUsable(): boolean {
    return !this.#client.destroyed;
  }

  /** Sends one request, on the open socket or a new one. The one before it must be over. */
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#awaitsHead = true;
    this.#hasBytes = false;
    this.#pieceOfHead = undefined;
    this.#client.dispatch(request, handler);
  }

  /** To be called when an answer is complete. */
  served(): void {
    this.#served += 1;
  }

  /** Closes the socket at once; a request in progress fails. */
  destroy(reason: Error): void {
    this.#client.destroy(reason).catch(() => {});
    this.#connecting?.destroy(reason);
  }

  #watch(socket: Socket): void {
    this.#served = 0;
    this.#isBroken = false;
    // Registered before undici's own listener, so that it is known when undici reports the end of a body.
    socket.on('error', () => {
      this.#isBroken = true;
    });
    const read = socket.read;
    socket.read = (size?: number) => {
      const chunk: Buffer | null = read.call(socket, size);
      return this.#awaitsHead && chunk !== null ? this.#headChunk(chunk) : chunk;
    };
  }

  /** The first bytes of an answer: an unasked 100 would make undici give the connection up. */
  #headChunk(chunk: Buffer): Buffer | null {
    this.#hasBytes = true;
    const head = this.#pieceOfHead === undefined ? chunk : Buffer.concat([this.#pieceOfHead, chunk]);
    const { at, isFinal } = renameContinue(head);
    // An interim head without an end is left to undici, which has a limit.
    if (isFinal || head.length - at > HEAD_LIMIT_BYTES) {
      this.#pieceOfHead = undefined;
      this.#awaitsHead = false;
      this.#httpMinor = minorOf(head, at);
      return head;
    }
    this.#pieceOfHead = head.subarray(at);
    return at === 0 ? null : head.subarray(0, at);
  }
}

const H = 0x48;
const ZERO = 0x30;
const MAJOR_AT = 5;
const MINOR_AT = 7;

/** Of `HTTP/1.x` at this place. undici's parser knows RTSP, ICE and other versions as well, and skips line ends before them. */
function minorOf(head: Buffer, at: number): number | undefined {
  if (head[at] !== H || head[at + MAJOR_AT] !== ZERO + 1) return undefined;
  return (head[at + MINOR_AT] ?? 0) - ZERO;
}
