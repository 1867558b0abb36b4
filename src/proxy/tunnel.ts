import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { KeyEntry } from '../keys/key-directory.ts';

/** The two ends of a switched connection, and the key that it was opened with. */
export interface TunnelOptions {
  readonly client: Socket;
  readonly backend: Duplex;
  /** What the client sent behind its head. */
  readonly firstBytes: Buffer;
  readonly entry: KeyEntry;
  /** Ends the tunnel when no byte has passed for so long, in either direction. Milliseconds. */
  readonly idleMs: number;
  /** Called once, when both ends are closed or about to be. */
  readonly onClosed: (tunnel: Tunnel) => void;
}

/** A switched connection: bytes go both ways, with back-pressure, until one side ends; then what it sent last still arrives. */
export class Tunnel {
  /** The key as it was known last. */
  entry: KeyEntry;
  readonly #client: Socket;
  readonly #backend: Duplex;

  constructor({ client, backend, firstBytes, entry, idleMs, onClosed }: TunnelOptions) {
    this.entry = entry;
    this.#client = client;
    this.#backend = backend;
    if (firstBytes.length > 0) client.unshift(firstBytes);
    client.once('close', () => {
      finish(backend);
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

  /** Ends both sides at once. */
  close(): void {
    this.#client.destroy();
    this.#backend.destroy();
  }
}

/** Ends a side whose other side is gone, once what was written to it is sent. */
function finish(side: Duplex): void {
  if (side.writableFinished || side.destroyed) side.destroy();
  else side.end(() => side.destroy());
}
