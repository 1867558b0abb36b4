import type { Socket } from 'node:net';
import type { KeyEntry } from '../../keys/cache/key-entry.ts';
import type { RequestSource } from '../../keys/key-restrictions.ts';
import type { KeyUse } from '../key-uses.ts';

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
/** How much is read from a client whose backend takes nothing, only to notice that the client has left. Bytes. */
const PROBED_BYTES = 1024 * 1024;
/** Seconds within which a backend must take a byte of what the client has sent. */
const MAX_STALLED_PROBES = 30;

/**
 * A switched connection: bytes go both ways, with backpressure. When the backend ends, its last bytes still reach the client. When the
 * client ends or resets, the side of the backend is closed at once, and bytes that the backend has not taken are discarded.
 */
export class Tunnel implements KeyUse {
  entry: KeyEntry;
  readonly source: RequestSource;
  readonly #client: Socket;
  readonly #backend: Socket;
  #taken = 0;
  #stalledProbes = 0;

  constructor({ client, backend, firstBytes, entry, source, idleMs = IDLE_MS, onClosed }: TunnelOptions) {
    this.entry = entry;
    this.source = source;
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
    // Every byte is read from or written to the client's socket, so its idle timeout covers both directions.
    client.setTimeout(idleMs, () => this.end());
    client.pipe(backend);
    backend.pipe(client);
  }

  /** Ends both sides at once. */
  end(): void {
    this.#client.destroy();
    this.#backend.destroy();
  }

  /**
   * To be called every second. While the backend takes nothing, the client is not read and could leave unnoticed. So a little more is
   * read from it, and a tunnel whose backend takes nothing for long is closed.
   */
  probe(): void {
    const backend = this.#backend;
    const taken = backend.bytesWritten - backend.writableLength;
    this.#stalledProbes = backend.writableNeedDrain && taken === this.#taken ? this.#stalledProbes + 1 : 0;
    this.#taken = taken;
    if (this.#stalledProbes >= MAX_STALLED_PROBES) this.end();
    else if (this.#stalledProbes > 0 && backend.writableLength < PROBED_BYTES) this.#client.resume();
  }

  /** The last bytes of the client are still sent, unless the backend does not take them. */
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
