import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

type Write = Socket['_write'];

/**
 * The sockets of the gateway's process, on both of its sides, as they come and go: to know what it has written, and to make a client's
 * socket full at a chosen moment, which a client that reads nothing does at a moment that depends on the system's buffers.
 */
export class GatewaySockets {
  readonly #sockets = new Set<Socket>();
  readonly #onSocket = (message: unknown): void => {
    const { socket } = message as { socket: Socket };
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  };

  constructor() {
    for (const channel of CHANNELS) subscribe(channel, this.#onSocket);
  }

  stop(): void {
    for (const channel of CHANNELS) unsubscribe(channel, this.#onSocket);
  }

  /** The gateway's end of a connection whose other end has this port, and that is made to or accepted on `port`. */
  find(ends: { readonly local?: number; readonly remote?: number }): Socket | undefined {
    return [...this.#sockets].find(
      (socket) =>
        (ends.local === undefined || socket.localPort === ends.local) &&
        (ends.remote === undefined || socket.remotePort === ends.remote),
    );
  }

  /** The gateway's open connections to a port. */
  keptFor(port: number): Socket[] {
    return [...this.#sockets].filter((socket) => socket.remotePort === port && !socket.destroyed);
  }

  /** From now on nothing that is written to the socket leaves it, until the returned function is called. */
  clog(socket: Socket): () => void {
    const held: (() => void)[] = [];
    let isClogged = true;
    const { _write, _writev } = socket;
    const hold = (write: () => void): void => {
      if (!isClogged) {
        write();
        return;
      }
      held.push(write);
      // Each write restarts the socket's idle time, also one that does not get far.
      if (socket.timeout !== undefined && socket.timeout > 0) socket.setTimeout(socket.timeout);
    };
    socket._write = (...args: Parameters<Write>) => hold(() => Reflect.apply(_write, socket, args));
    if (_writev !== undefined) socket._writev = (...args) => hold(() => Reflect.apply(_writev, socket, args));
    return () => {
      isClogged = false;
      for (const write of held.splice(0)) if (!socket.destroyed) write();
    };
  }
}

const CHANNELS = ['net.server.socket', 'net.client.socket'];
