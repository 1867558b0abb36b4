import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** One end of a connection, without any idea of HTTP. Keeps all bytes that it receives. */
export class RawPeer {
  readonly socket: Socket;
  /** How the connection ended, as seen from here: `fin`, `reset`, or `open` until then. */
  ending: 'open' | 'fin' | 'reset' = 'open';
  #chunks: Buffer[] = [];
  #length = 0;
  #waiting: (() => void)[] = [];
  #responses = 0;
  #response: string | Buffer | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#length += chunk.length;
      this.#wake();
    });
    socket.on('end', () => {
      if (this.ending === 'open') this.ending = 'fin';
      this.#wake();
    });
    socket.on('error', () => {
      this.ending = 'reset';
      this.#wake();
    });
    socket.on('close', () => this.#wake());
  }

  /**
   * To a port of loopback, or to a socket's path. With `goesOn` it may send after the other side has ended; `from` is its own address of
   * loopback.
   */
  static async connect(to: number | string, goesOn = false, from?: string): Promise<RawPeer> {
    const place = { host: '127.0.0.1', noDelay: true, ...(from !== undefined && { localAddress: from }) };
    const target = typeof to === 'string' ? { path: to } : { port: to, ...place };
    const socket = connect({ ...target, allowHalfOpen: goesOn });
    await once(socket, 'connect');
    return new RawPeer(socket);
  }

  /** All bytes received, one character a byte. */
  get text(): string {
    return this.bytes.toString('latin1');
  }

  get bytes(): Buffer {
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all;
  }

  get length(): number {
    return this.#length;
  }

  send(bytes: string | Buffer): void {
    if (!this.socket.destroyed)
      this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  }

  /** Resolves with all bytes as soon as they hold the claim. Rejects when the connection ends before, or after 30 s. */
  async until(claim: (text: string) => boolean): Promise<string> {
    const deadline = Date.now() + 30_000;
    while (!claim(this.text)) {
      if (this.ending !== 'open') throw new Error(`${this.ending} after: ${this.text.slice(0, 2000)}`);
      if (Date.now() > deadline) throw new Error(`in vain, after: ${this.text.slice(0, 2000)}`);
      await this.#change();
    }
    return this.text;
  }

  /** Resolves with all bytes once the other side has ended the connection, in whatever way. */
  async ended(): Promise<string> {
    const deadline = Date.now() + 30_000;
    while (this.ending === 'open' && !this.socket.destroyed) {
      if (Date.now() > deadline) throw new Error(`still open, after: ${this.text.slice(0, 2000)}`);
      await this.#change();
    }
    return this.text;
  }

  /** Whether the other side still holds the connection after `ms`. */
  async staysOpen(ms: number): Promise<boolean> {
    const deadline = Date.now() + ms;
    while (Date.now() < deadline && this.ending === 'open') await this.#change(deadline - Date.now());
    return this.ending === 'open';
  }

  /** Waits for the head of the n-th request or response received (from 0) and resolves with it. */
  async head(index = 0): Promise<string> {
    const text = await this.until((all) => all.split('\r\n\r\n').length > index + 1);
    return text.split('\r\n\r\n')[index] ?? '';
  }

  /** From now on pauses after so many bytes or a few more, each time that they have arrived. */
  readSlowly(bytes: number, pauseMs: number): void {
    let pausesAt = this.#length + bytes;
    this.socket.on('data', () => {
      if (this.#length < pausesAt) return;
      pausesAt = this.#length + bytes;
      this.socket.pause();
      setTimeout(() => this.socket.resume(), pauseMs);
    });
  }

  /** Writes these bytes each time that one more head has arrived. A later call changes the bytes. */
  respondToEachHead(bytes: string | Buffer): void {
    const isResponding = this.#response !== undefined;
    this.#response = bytes;
    if (isResponding) return;
    const look = () => {
      const heads = this.text.split('\r\n\r\n').length - 1;
      while (this.#responses < heads) {
        this.#responses += 1;
        this.send(this.#response ?? '');
      }
    };
    this.socket.on('data', look);
  }

  end(): void {
    this.socket.end();
  }

  reset(): void {
    this.socket.resetAndDestroy();
  }

  destroy(): void {
    this.socket.destroy();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #change(atMostMs = 1000): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.max(1, atMostMs));
      this.#waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
