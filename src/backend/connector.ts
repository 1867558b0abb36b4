import { type OnReadOpts, Socket } from 'node:net';
// Not `undici` itself: loading its unused rest would take a tenth of the CPU time of a start.
import buildConnector from 'undici/lib/core/connect.js';
import { BackendError } from './backend-error.ts';
import { ReadBuffers } from './read-buffers.ts';
import { sharedLookup } from './shared-lookup.ts';

/** Where the backend is and how connections to it are made and kept. */
export interface BackendOptions {
  /** Scheme and authority. */
  readonly url: URL;
  /** How long making a connection may take, TLS included. Milliseconds. */
  readonly connectTimeoutMs: number;
  /** Idle timeout within a response body. Milliseconds. */
  readonly bodyIdleMs: number;
  /** Called with what a request's error callback threw. Must not throw. */
  readonly onFault?: (error: unknown) => void;
}

/** How long one address of several is tried before the next one, at most: a lost packet is sent again after a second. Milliseconds. */
const ADDRESS_MS = 2500;
const TIMEOUTS: ReadonlySet<unknown> = new Set(['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT']);

/** Opens sockets to one backend; they share the TLS sessions. */
export class BackendConnector {
  /** For sockets that can read into them. */
  readonly readBuffers = new ReadBuffers();
  readonly #options: buildConnector.BuildOptions;
  readonly #connect: buildConnector.connector;
  readonly #target: buildConnector.Options;
  /** Sockets opened since the start. */
  opened = 0;

  constructor({ url, connectTimeoutMs }: BackendOptions) {
    this.#options = {
      allowH2: false,
      timeout: connectTimeoutMs,
      lookup: sharedLookup(),
      autoSelectFamilyAttemptTimeout: Math.min(ADDRESS_MS, Math.ceil(connectTimeoutMs / 4)),
    };
    this.#connect = buildConnector(this.#options);
    this.#target = {
      protocol: url.protocol,
      host: url.host,
      // An IPv6 address without its brackets.
      hostname: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port,
    };
  }

  /** Whether sockets can read into a given buffer; TLS sockets can't. */
  get takesReadBuffer(): boolean {
    return this.#target.protocol === 'http:';
  }

  /**
   * Calls back with an open socket or an error. Returns the socket that is being connected, so that the caller can destroy it. With
   * `onread` the socket emits no `data`.
   */
  connect(
    connected: (error: BackendError | null, socket?: Socket) => void,
    onread?: OnReadOpts,
  ): Socket | undefined {
    const connect = onread === undefined ? this.#connect : buildConnector({ ...this.#options, onread });
    // Its type does not say so, but undici's connector returns the socket that it is connecting.
    const connecting: unknown = connect(this.#target, (...[error, socket]) => {
      // undici's types say null, but it leaves the argument out when the connection fails.
      if (socket) this.opened += 1;
      if (socket) connected(null, socket);
      else connected(connectError(error));
    });
    return connecting instanceof Socket ? connecting : undefined;
  }
}

function connectError(cause: Error | null): BackendError {
  return cause !== null && 'code' in cause && TIMEOUTS.has(cause.code)
    ? new BackendError('connect_timeout', 'The backend took no connection in time.', cause)
    : new BackendError('connect_failed', 'There is no connection to the backend.', cause ?? undefined);
}
