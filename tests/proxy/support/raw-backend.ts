import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from './localhost-certificate.ts';
import { RawPeer } from './raw-peer.ts';

/** A backend that is nothing but sockets: each connection is scripted, byte for byte, and each byte received is kept. */
export class RawBackend {
  /** Connections in the order in which they were accepted. */
  readonly connections: RawPeer[] = [];
  readonly #server: Server;
  readonly #isTls: boolean;
  #accept: (connection: RawPeer, index: number) => void = () => {};
  #waiting: (() => void)[] = [];

  private constructor(server: Server, isTls: boolean) {
    this.#server = server;
    this.#isTls = isTls;
    server.on(isTls ? 'secureConnection' : 'connection', (socket: Socket) => {
      const peer = new RawPeer(socket);
      this.connections.push(peer);
      this.#accept(peer, this.connections.length - 1);
      for (const wake of this.#waiting.splice(0)) wake();
    });
  }

  /** With TLS it has the certificate of `localhost`. */
  static async start({ isTls = false } = {}): Promise<RawBackend> {
    const options = { allowHalfOpen: true, noDelay: true };
    const server = isTls
      ? createTlsServer({ ...options, cert: LOCALHOST_CERTIFICATE, key: LOCALHOST_KEY })
      : createServer(options);
    const backend = new RawBackend(server, isTls);
    backend.#server.listen(0, '127.0.0.1');
    await once(backend.#server, 'listening');
    return backend;
  }

  get url(): string {
    return this.#isTls ? `https://localhost:${this.port}` : `http://127.0.0.1:${this.port}`;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** What to do with each connection from now on. */
  onConnection(accept: (connection: RawPeer, index: number) => void): void {
    this.#accept = accept;
  }

  /** Responds to every request head from now on with these bytes, on open connections too; a body is read and ignored. Fitting where requests have no or small bodies. */
  respond(bytes: string | Buffer): void {
    for (const connection of this.connections) connection.respondToEachHead(bytes);
    this.onConnection((connection) => connection.respondToEachHead(bytes));
  }

  /** The n-th connection (from 0), as soon as there is one. */
  async connection(index = 0): Promise<RawPeer> {
    while (this.connections.length <= index) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    return this.connections[index] as RawPeer;
  }

  /** All that was received, of all connections together. */
  get received(): string {
    return this.connections.map((connection) => connection.text).join('');
  }

  async stop(): Promise<void> {
    for (const connection of this.connections) connection.destroy();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, 'close');
  }
}
