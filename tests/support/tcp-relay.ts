import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

/** What a relay may do besides passing bytes on. */
export interface RelayOptions {
  /** The port to listen on; one of the system's choice by default. */
  readonly port?: number;
  /** Sees all that clients send, chunk by chunk, and on which connection. */
  readonly onSent?: (bytes: Buffer, client: Socket) => void;
  /** What clients get instead of what the server sent. */
  readonly rewrite?: (bytes: Buffer) => Buffer;
}

/**
 * A port in front of a server, to break the connections between the two without touching the server: to a client, a relay
 * that rejects is a server that is gone, and a silent one is a server that hangs.
 */
export class TcpRelay {
  #upstreamPort: number | undefined;
  readonly #options: RelayOptions;
  readonly #server: Server;
  readonly #clients = new Set<Socket>();
  readonly #upstreams = new Set<Socket>();
  #isSilent = false;
  #losesReply = false;
  #delayMs = 0;
  #accepted = 0;

  private constructor(upstreamPort: number | undefined, options: RelayOptions) {
    this.#upstreamPort = upstreamPort;
    this.#options = options;
    this.#server = createServer((client) => this.#take(client));
  }

  /** Starts in front of a loopback port; with none, it rejects everybody. The caller must stop it. */
  static async start(upstreamPort: number | undefined, options: RelayOptions = {}): Promise<TcpRelay> {
    const relay = new TcpRelay(upstreamPort, options);
    relay.#server.listen(options.port ?? 0, '127.0.0.1');
    await once(relay.#server, 'listening');
    return relay;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the relay does not listen');
    return address.port;
  }

  /** Clients connected now. */
  get connections(): number {
    return this.#clients.size;
  }

  /** Connections of clients since the start. */
  get accepted(): number {
    return this.#accepted;
  }

  /** A URL of the server, with the relay's port in its place. */
  urlOf(url: string): string {
    const relayed = new URL(url);
    relayed.hostname = '127.0.0.1';
    relayed.port = String(this.port);
    return relayed.href;
  }

  /** Passes connections on from now on, those that were silent too. */
  pass(upstreamPort = this.#upstreamPort): void {
    this.#upstreamPort = upstreamPort;
    this.#isSilent = false;
    for (const socket of [...this.#clients, ...this.#upstreams]) socket.resume();
  }

  /** Keeps connections open, takes new ones, and passes nothing on in either direction. */
  silence(): void {
    this.#isSilent = true;
    for (const socket of [...this.#clients, ...this.#upstreams]) socket.pause();
  }

  /** Passes what the server responds on so many milliseconds later; 0 = at once. */
  delayReplies(ms: number): void {
    this.#delayMs = ms;
  }

  /** Ends the connection on which the server responds next, instead of passing that on. */
  loseReply(): void {
    this.#losesReply = true;
  }

  /** Ends all connections, and every new one at once. */
  reject(): void {
    this.#upstreamPort = undefined;
    this.cut();
  }

  /** Ends all connections there are. */
  cut(): void {
    for (const socket of [...this.#clients, ...this.#upstreams]) socket.destroy();
  }

  async stop(): Promise<void> {
    this.reject();
    this.#server.close();
    if (this.#server.listening) await once(this.#server, 'close');
  }

  #take(client: Socket): void {
    this.#accepted += 1;
    client.on('error', () => client.destroy());
    if (this.#upstreamPort === undefined) {
      client.destroy();
      return;
    }
    const upstream = connect({ port: this.#upstreamPort, host: '127.0.0.1', noDelay: true });
    upstream.on('error', () => client.destroy());
    this.#hold(this.#clients, client, upstream);
    this.#hold(this.#upstreams, upstream, client);
    const { onSent, rewrite = (bytes: Buffer) => bytes } = this.#options;
    client.on('data', (bytes: Buffer) => {
      onSent?.(bytes, client);
      upstream.write(bytes);
    });
    let waiting = 0;
    let last: Promise<unknown> = Promise.resolve();
    upstream.on('data', (bytes: Buffer) => {
      if (this.#losesReply) {
        this.#losesReply = false;
        client.destroy();
        return;
      }
      const response = rewrite(bytes);
      if (this.#delayMs === 0 && waiting === 0) {
        client.write(response);
        return;
      }
      // Never before what came earlier, although the delay may have ended meanwhile: replies in another order are replies to other calls.
      waiting += 1;
      last = Promise.all([last, wait(this.#delayMs)]).then(() => {
        waiting -= 1;
        if (client.writable) client.write(response);
      });
    });
    if (this.#isSilent) for (const socket of [client, upstream]) socket.pause();
  }

  #hold(sockets: Set<Socket>, socket: Socket, other: Socket): void {
    socket.setNoDelay(true);
    sockets.add(socket);
    socket.on('end', () => other.end());
    socket.on('close', () => {
      sockets.delete(socket);
      other.destroy();
    });
  }
}

/** The port of a Redis or Postgres URL, which may leave out the usual one. */
export function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return Number(port) || (protocol.startsWith('redis') ? 6379 : 5432);
}
