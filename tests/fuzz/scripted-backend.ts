import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { ReadRequest } from '../proxy/differential/strict-reading.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';
import { BackendSide } from './backend-side.ts';
import type { GatewaySockets } from './gateway-sockets.ts';
import { intrusionMessage } from './response-message.ts';
import type { Intrusion, RequestPlan } from './sequence.ts';

/** One arrival of a request at the backend. */
export interface Arrival {
  readonly token: string;
  /** Number of its connection, and how many responses that had brought before. */
  readonly connection: number;
  readonly served: number;
  /** Undefined until all of it has arrived. */
  request: ReadRequest | undefined;
  /** Bytes of a response that were sent for it. */
  bytesSent: number;
}

/** A backend that responds to each request as its plan says, and keeps all that reaches it. */
export class ScriptedBackend {
  readonly arrivals: Arrival[] = [];
  /** What reached it and is no request of the sequence. */
  readonly strays: string[] = [];
  readonly #server: Server;
  readonly #sockets: GatewaySockets;
  readonly #plans: ReadonlyMap<string, RequestPlan>;
  readonly #connections: BackendSide[] = [];

  private constructor(server: Server, sockets: GatewaySockets, plans: readonly RequestPlan[]) {
    this.#server = server;
    this.#sockets = sockets;
    this.#plans = new Map(plans.map((plan) => [plan.token, plan]));
    server.on('connection', (socket: Socket) => {
      this.#connections.push(new BackendSide(socket, this.#connections.length, this));
    });
  }

  static async start(sockets: GatewaySockets, plans: readonly RequestPlan[]): Promise<ScriptedBackend> {
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    await listenOnLoopback(server);
    return new ScriptedBackend(server, sockets, plans);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connections that neither side has ended. */
  get open(): readonly BackendSide[] {
    return this.#connections.filter(({ isOpen }) => isOpen);
  }

  planOf(token: string): RequestPlan | undefined {
    return this.#plans.get(token);
  }

  /** Does something on the n-th open connection without a request, if the gateway is certain to see it while the connection is idle. */
  intrude(index: number, bytes: Intrusion): void {
    this.#idle(index)?.socket.write(intrusionMessage(bytes));
  }

  drop(index: number, by: 'fin' | 'reset'): void {
    const connection = this.#idle(index);
    if (by === 'fin') connection?.socket.end();
    else connection?.socket.resetAndDestroy();
  }

  /** Whether the gateway has written nothing on the connection that has not arrived. */
  hasAllOf({ socket }: BackendSide): boolean {
    if (socket.remotePort === undefined) return false;
    const end = this.#sockets.find({ local: socket.remotePort, remote: this.port });
    return end !== undefined && end.bytesWritten === socket.bytesRead;
  }

  async stop(): Promise<void> {
    for (const { socket } of this.#connections) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #idle(index: number): BackendSide | undefined {
    const connection = this.open.filter(({ isIdle }) => isIdle)[index];
    return connection !== undefined && this.hasAllOf(connection) ? connection : undefined;
  }
}
