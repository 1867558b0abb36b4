import { connect, type Socket } from 'node:net';
import type { BenchKey } from '../setup/candidate.ts';

/** Requests at a fixed rate, whatever the responses do. */
export interface FixedRate {
  readonly port: number;
  readonly keys: readonly BenchKey[];
  readonly path: string;
  readonly ratePerSecond: number;
  readonly seconds: number;
}

/** What the clients of a fixed rate saw. */
export interface FixedRateResult {
  readonly requests: number;
  readonly durationUs: number;
  /** Responses with a status of 400 or more. */
  readonly limited: number;
  /** Responses that did not come. */
  readonly broken: number;
  /** Each from the moment at which the request was due until its whole response was here, in order of size. Milliseconds. */
  readonly latenciesMs: readonly number[];
}

/** So many connections are enough that no request waits for one, unless responses are late. */
const CONNECTIONS = 16;
/** How long the last responses are waited for. Milliseconds. */
const PATIENCE_MS = 10_000;
const HEAD_END = Buffer.from('\r\n\r\n');
const NOTHING = Buffer.alloc(0);

interface Due {
  readonly atMs: number;
}

/**
 * Sends a request every so many milliseconds, in keep-alive connections, one request in each at a time. A request for which no connection is
 * free waits, and its time counts: a gateway that stalls can't hide it by not being asked ("coordinated omission"). When this process runs
 * late, what is due is sent at once, and is due then: its own lateness is no latency of the gateway.
 */
export async function runFixedRate(load: FixedRate): Promise<FixedRateResult> {
  const { port, keys, path, ratePerSecond, seconds } = load;
  const requests = keys.map(({ secret }) => requestOf(port, path, secret));
  const latenciesMs: number[] = [];
  const waiting: Due[] = [];
  const idle: Client[] = [];
  const clients = Array.from({ length: CONNECTIONS }, () => new Client(port));
  let limited = 0;
  let broken = 0;
  await Promise.all(clients.map((client) => client.opened));
  idle.push(...clients);

  const sendNext = () => {
    while (waiting.length > 0 && idle.length > 0) {
      const client = idle.pop();
      const due = waiting.shift();
      const request = requests[Math.floor(Math.random() * requests.length)];
      if (client === undefined || due === undefined || request === undefined) return;
      client.send(request).then(
        (status) => {
          latenciesMs.push(performance.now() - due.atMs);
          if (status >= 400) limited += 1;
          idle.push(client);
          sendNext();
        },
        () => {
          broken += 1;
        },
      );
    }
  };

  const beganAtMs = performance.now();
  const total = Math.round(ratePerSecond * seconds);
  let sent = 0;
  await new Promise<void>((resolve) => {
    const turn = () => {
      const nowMs = performance.now();
      for (; sent < total && beganAtMs + (sent * 1000) / ratePerSecond <= nowMs; sent += 1)
        waiting.push({ atMs: nowMs });
      sendNext();
      if (sent === total) return resolve();
      setTimeout(turn, Math.max(0, beganAtMs + (sent * 1000) / ratePerSecond - performance.now()));
    };
    turn();
  });
  const durationMs = performance.now() - beganAtMs;
  const untilMs = performance.now() + PATIENCE_MS;
  while (latenciesMs.length + broken < total && performance.now() < untilMs)
    await new Promise((resolve) => setTimeout(resolve, 5));
  for (const client of clients) client.close();
  return {
    requests: latenciesMs.length,
    durationUs: durationMs * 1000,
    limited,
    broken: total - latenciesMs.length,
    latenciesMs: latenciesMs.toSorted((a, b) => a - b),
  };
}

function requestOf(port: number, path: string, secret: string): string {
  return [
    `GET ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'User-Agent: bench/1.0',
    'Accept: */*',
    `Authorization: Bearer ${secret}`,
    '\r\n',
  ].join('\r\n');
}

/** One keep-alive connection. Reads responses with a Content-Length. */
class Client {
  readonly opened: Promise<void>;
  readonly #socket: Socket;
  #received: Buffer = NOTHING;
  #settle: { readonly done: (status: number) => void; readonly failed: (error: Error) => void } | undefined;

  constructor(port: number) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.opened = new Promise((resolve, reject) => {
      this.#socket.once('connect', resolve).once('error', reject);
    });
    this.#socket.on('data', (chunk: Buffer) => this.#read(chunk));
    this.#socket.on('close', () => this.#settle?.failed(new Error('the connection closed')));
  }

  /** Resolves with the status once the response is here. */
  send(request: string): Promise<number> {
    return new Promise((done, failed) => {
      this.#settle = { done, failed };
      if (this.#socket.destroyed) failed(new Error('the connection is closed'));
      else this.#socket.write(request, 'latin1');
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const headEnd = this.#received.indexOf(HEAD_END);
    if (headEnd === -1) return;
    const head = this.#received.toString('latin1', 0, headEnd);
    const length = /^content-length: *(\d+)/im.exec(head)?.[1];
    if (length === undefined) return void this.#socket.destroy(new Error('a response without a length'));
    if (this.#received.length < headEnd + HEAD_END.length + Number(length)) return;
    this.#received = NOTHING;
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.done(Number(head.slice(9, 12)));
  }
}
