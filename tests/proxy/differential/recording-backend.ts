import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { type ReadRequest, readStrictly } from './strict-reading.ts';

const RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';

/** A backend that reads strictly, keeps every complete request that reaches it and responds to it with an empty 200. */
export class RecordingBackend {
  /** Complete requests, in the order in which they became complete. */
  readonly requests: ReadRequest[] = [];
  /** What could not be read, of each connection that brought such a thing. */
  readonly malformed: string[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #changed: () => void = () => {};

  private constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket: Socket) => this.#serve(socket));
  }

  /** On loopback, on a port of the system's choice. */
  static async start(): Promise<RecordingBackend> {
    const backend = new RecordingBackend(createServer({ noDelay: true }));
    backend.#server.listen(0, '127.0.0.1');
    await once(backend.#server, 'listening');
    return backend;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Forgets what was recorded; `changed` is called for each request from now on. */
  reset(changed: () => void = () => {}): void {
    this.requests.length = 0;
    this.malformed.length = 0;
    this.#changed = changed;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #serve(socket: Socket): void {
    let text = '';
    let seen = 0;
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      const { requests, rest } = readStrictly(text);
      for (const request of requests.slice(seen)) {
        this.requests.push(request);
        socket.write(RESPONSE);
      }
      seen = requests.length;
      if (rest === 'malformed') {
        this.malformed.push(text);
        socket.destroy();
      }
      if (rest === 'nothing') {
        text = '';
        seen = 0;
      }
      this.#changed();
    });
  }
}
