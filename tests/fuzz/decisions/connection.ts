import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type ReadResponse, ResponseReader } from '../response-reader.ts';
import { type Segment, segmentsOf } from '../segments.ts';
import type { Segmentation } from '../sequence.ts';
import { holdsWithin, turns } from '../turns.ts';

/** Far longer than a response takes where the machine has other things to do. Milliseconds. */
const GIVE_UP_MS = 20_000;

/** A client that keeps its connection as long as the gateway lets it. */
export class Connection {
  readonly #port: number;
  #socket: Socket | undefined;
  #reader = new ResponseReader();

  constructor(port: number) {
    this.#port = port;
  }

  /** Sends one message, and resolves with the response; undefined: the connection ended without one, or nothing came. */
  async ask(message: string, method: string, segmentation: Segmentation): Promise<ReadResponse | undefined> {
    const socket = await this.#opened();
    const reader = this.#reader;
    const before = reader.complete.length;
    reader.expect(method);
    await write(socket, segmentsOf(Buffer.from(message, 'latin1'), segmentation));
    const isOver = () =>
      reader.complete.length > before || reader.ending !== 'open' || reader.fault !== undefined;
    await holdsWithin(GIVE_UP_MS, isOver);
    const response = reader.complete[before];
    if (response === undefined || response.headers.get('connection') === 'close') this.close();
    return response;
  }

  /** What came and is no response to a message. */
  get fault(): string | undefined {
    return this.#reader.fault;
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  async #opened(): Promise<Socket> {
    if (this.#socket !== undefined && !this.#socket.destroyed && this.#reader.ending === 'open')
      return this.#socket;
    this.close();
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    const reader = new ResponseReader();
    [this.#socket, this.#reader] = [socket, reader];
    socket.on('data', (chunk: Buffer) => reader.push(chunk));
    socket.on('error', () => reader.end('reset'));
    socket.on('end', () => reader.end('fin'));
    socket.on('close', () => reader.end('reset'));
    await once(socket, 'connect');
    return socket;
  }
}

async function write(socket: Socket, segments: readonly Segment[]): Promise<void> {
  for (const { turns: count, bytes } of segments) {
    if (count > 0) await turns(count);
    if (!socket.writable) return;
    socket.write(bytes);
  }
}
