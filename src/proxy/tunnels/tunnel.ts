import type { Socket } from 'node:net';
import type { KeyEntry } from '../../keys/cache/key-entry.ts';
import type { KeySnapshot } from '../../keys/consumer-key.ts';
import { type RequestSource, restrictionFault } from '../../keys/key-restrictions.ts';

/** The two ends of a switched connection, and the key that it was opened with. */
export interface TunnelOptions {
  readonly client: Socket;
  readonly backend: Socket;
  /** What the client sent after its head. */
  readonly firstBytes: Buffer;
  readonly entry: KeyEntry;
  /** Where the client opened it from. */
  readonly source: RequestSource;
  /** Ends the tunnel when no byte has passed for this long, in either direction; undefined = 120 000. Milliseconds. */
  readonly idleMs: number | undefined;
  /** Called once, when both ends are closed or about to be. */
  readonly onClosed: (tunnel: Tunnel) => void;
}

const IDLE_MS = 120_000;
/** How much more is read of a client whose backend takes nothing, only to notice that it leaves. Bytes. */
const PROBED_BYTES = 1024 * 1024;
/** Seconds within which a backend must take a byte of what the client has sent. */
const MAX_STALLED_PROBES = 30;

/**
 * A switched connection: bytes go both ways, with backpressure. A backend that ends still gets its last bytes to the client. A client
 * that ends or resets is gone: its backend side is closed at once, with all that the backend has not taken.
 */
export class Tunnel {
  /** The key as it was known last. */
  entry: KeyEntry;
  readonly #source: RequestSource;
  readonly #client: Socket;
  readonly #backend: Socket;
  #taken = 0;
  #stalledProbes = 0;

  constructor({ client, backend, firstBytes, entry, source, idleMs = IDLE_MS, onClosed }: TunnelOptions) {
    this.entry = entry;
    this.#source = source;
    this.#client = client;
    this.#backend = backend;
    if (firstBytes.length > 0) client.unshift(firstBytes);
    client.once('end', () => this.#closeBackend());
    client.once('close', () => {
      backend.destroy();
      onClosed(this);
    });
    backend.once('close', () => finish(client));
    backend.on('error', () => client.destroy());
    client.on('error', () => backend.destroy());
    // Every byte that passes is read from one and written to the other: the client's socket sees them all.
    client.setTimeout(idleMs, () => this.close());
    client.pipe(backend);
    backend.pipe(client);
  }

  /** Whether the key may still be used from where the tunnel was opened. */
  isAllowedBy({ restrictions }: KeySnapshot): boolean {
    return restrictions === null || restrictionFault(restrictions, this.#source) === undefined;
  }

  /** Ends both sides at once. */
  close(): void {
    this.#client.destroy();
    this.#backend.destroy();
  }

  /**
   * To be called every second: a client whose bytes the backend does not take is not read, and a client that is not read can leave
   * unnoticed. So a little more is read of it, and a tunnel whose backend takes nothing for long is closed.
   */
  probe(): void {
    const backend = this.#backend;
    const taken = backend.bytesWritten - backend.writableLength;
    this.#stalledProbes = backend.writableNeedDrain && taken === this.#taken ? this.#stalledProbes + 1 : 0;
    this.#taken = taken;
    if (this.#stalledProbes >= MAX_STALLED_PROBES) this.close();
    else if (this.#stalledProbes > 0 && backend.writableLength < PROBED_BYTES) this.#client.resume();
  }

  /** What the client sent last still goes out, unless the backend does not take it. */
  #closeBackend(): void {
    if (this.#backend.writableLength > 0) this.#backend.destroy();
    else this.#backend.destroySoon();
    this.#client.destroy();
  }
}

/** Ends the client's side when the backend's is gone, once what was written to it is sent. */
function finish(client: Socket): void {
  if (client.writableFinished || client.destroyed) client.destroy();
  else client.end(() => client.destroy());
}
