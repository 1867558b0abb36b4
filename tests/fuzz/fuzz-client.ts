import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { GatewaySockets } from './gateway-sockets.ts';
import { type RequestMessage, requestMessage } from './request-message.ts';
import { ResponseReader } from './response-reader.ts';
import type { ClientAction, RequestPlan } from './sequence.ts';
import { turns } from './turns.ts';

/** A client with one connection to the gateway. Sends what the sequence says, in its order, and keeps what comes back. */
export class FuzzClient {
  readonly key: 0 | 1;
  readonly sent: RequestPlan[] = [];
  readonly reader = new ResponseReader();
  readonly #secret: string;
  readonly #socket: Socket;
  readonly #sockets: GatewaySockets;
  readonly #gatewayPort: number;
  #writing: Promise<void> | undefined;
  #unclog: () => void = () => {};

  private constructor(socket: Socket, key: 0 | 1, secret: string, sockets: GatewaySockets) {
    this.#socket = socket;
    this.key = key;
    this.#secret = secret;
    this.#sockets = sockets;
    this.#gatewayPort = socket.remotePort ?? 0;
    socket.on('data', (chunk: Buffer) => this.reader.push(chunk));
    socket.on('error', () => this.reader.end('reset'));
    socket.on('end', () => {
      this.reader.end('fin');
      socket.destroy();
    });
    // Also when this side has ended the connection by itself.
    socket.on('close', () => this.reader.end('reset'));
  }

  static async connect(
    port: number,
    sockets: GatewaySockets,
    { key, secret }: { readonly key: 0 | 1; readonly secret: string },
  ): Promise<FuzzClient> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    await once(socket, 'connect');
    return new FuzzClient(socket, key, secret, sockets);
  }

  /** Each request sent has its response, or the connection is at its end. */
  get isServed(): boolean {
    return (
      this.reader.ending !== 'open' ||
      (this.#writing === undefined && this.reader.complete.length >= this.sent.length)
    );
  }

  send(plan: RequestPlan): void {
    // What follows half a request would be taken for the rest of it.
    if (!this.#socket.writable || (this.sent.at(-1)?.fault.kind ?? 'none') !== 'none') return;
    this.sent.push(plan);
    const message = requestMessage(plan, this.#secret);
    // What rejects a head that never came has a body, whatever its method was to be.
    this.reader.expect(message.hasHead ? plan.method : 'GET');
    const writing = this.#write(message).then(() => {
      if (this.#writing === writing) this.#writing = undefined;
    });
    this.#writing = writing;
  }

  act(action: ClientAction): void {
    switch (action) {
      case 'pause':
        this.#socket.pause();
        return;
      case 'resume':
        this.#socket.resume();
        return;
      case 'clog':
        this.#clog();
        return;
      case 'unclog':
        this.#unclog();
        return;
      case 'end':
        this.reader.hasEnded = true;
        this.#socket.end();
        return;
      case 'reset':
        this.#reset();
        return;
    }
  }

  destroy(): void {
    this.#socket.destroy();
  }

  async #write({ segments, afterwards }: RequestMessage): Promise<void> {
    if (this.#writing !== undefined) await this.#writing;
    for (const { turns: count, bytes } of segments) {
      if (count > 0) await turns(count);
      if (!this.#socket.writable) return;
      this.#socket.write(bytes);
    }
    if (afterwards === 'fin') this.act('end');
    if (afterwards === 'reset') this.#reset();
  }

  #reset(): void {
    // Node leaks a socket that is reset while it is ending.
    if (this.#socket.writableEnded) this.#socket.destroy();
    else this.#socket.resetAndDestroy();
  }

  #clog(): void {
    const port = this.#socket.localPort;
    const end =
      port === undefined ? undefined : this.#sockets.find({ local: this.#gatewayPort, remote: port });
    if (end === undefined) return;
    this.#unclog();
    this.#unclog = this.#sockets.clog(end);
  }
}
