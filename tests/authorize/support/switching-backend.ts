import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as the backend got it. */
export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

/** A backend with another rate limit, and costs. It records its requests, and switches to every protocol that it is asked for: then it sends back each byte. */
export class SwitchingBackend {
  readonly #server: Server;
  readonly received: Received[] = [];
  /** The protocols that it has switched to, and the requests for them. */
  readonly switched: string[] = [];
  readonly upgrades: Received[] = [];
  /** Bytes of bodies. */
  uploaded = 0;

  private constructor() {
    // Idle connections stay: a request on one that is just being closed would fail.
    this.#server = createServer({ keepAliveTimeout: 0 }, (req, res) => {
      const { method = '', url = '', headers } = req;
      this.received.push({ method, url, headers });
      req.on('data', (chunk: Buffer) => {
        this.uploaded += chunk.length;
      });
      req.on('end', () => {
        res.statusCode = url === '/fails' ? 500 : 200;
        for (const name of ['ratelimit-policy', 'ratelimit', 'x-ratelimit-limit']) res.setHeader(name, 'own');
        res.setHeader('tollgate-cost', '7');
        res.end('from the backend');
      });
    });
    this.#server.on('upgrade', ({ method = '', url = '', headers }, socket) => {
      const { upgrade = '' } = headers;
      this.upgrades.push({ method, url, headers });
      this.switched.push(upgrade);
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n`,
      );
      socket.pipe(socket);
      socket.on('error', () => socket.destroy());
    });
  }

  static async start(): Promise<SwitchingBackend> {
    const backend = new SwitchingBackend();
    await new Promise<void>((done) => backend.#server.listen(0, '127.0.0.1', done));
    return backend;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
