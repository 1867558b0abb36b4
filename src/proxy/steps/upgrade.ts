import type { IncomingMessage } from 'node:http';
import type { BlockList, Socket } from 'node:net';
import { headerValue, type ResponseHead } from '../../backend/response-head.ts';
import { TollgateError } from '../../errors.ts';
import { lingeringClose } from '../../http/connections/lingering-close.ts';
import { headerLine, RawHeadResponse } from '../../http/node-internals.ts';
import type { Exchange, Step } from '../exchange.ts';
import { BackendCall, type BackendCallOptions } from '../forwarding/backend-call.ts';
import { type RequestHeadersOptions, requestHeaderLines } from '../headers/request-headers.ts';
import { type ResponseHeaders, responseHeaders } from '../headers/response-headers.ts';
import type { Tunnels } from '../tunnels/tunnels.ts';
import { sourceOf } from './authenticate.ts';

/** Where and how upgrades are forwarded. */
export interface UpgradeOptions extends BackendCallOptions, RequestHeadersOptions {
  readonly tunnels: Tunnels;
  readonly trustedProxies: BlockList;
  /** Idle timeout of a switched connection; undefined = that of `Tunnel`. Milliseconds. */
  readonly idleMs: number | undefined;
  /** What the client sent after its head. */
  readonly firstBytesOf: (exchange: Exchange) => Buffer;
}

/**
 * Makes a response on the socket of an upgrade, because Node makes none: so the same steps serve upgrades and other requests. After the
 * response the connection is closed.
 */
export function responseOn(socket: Socket, req: IncomingMessage): RawHeadResponse {
  const res = new RawHeadResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(socket);
  const onDrain = (): void => {
    res.emit('drain');
  };
  // The socket keeps the server's idle timeout, but no listener of the server: a client that does not take what is written is cut.
  const onTimeout = (): void => {
    if (socket.writableLength > 0) socket.destroy();
  };
  socket.on('drain', onDrain).on('timeout', onTimeout);
  res.once('close', () => socket.off('drain', onDrain).off('timeout', onTimeout));
  res.once('finish', () => {
    res.detachSocket(socket);
    lingeringClose(socket);
    res.emit('close');
  });
  return res;
}

/**
 * The last step of an upgrade: sends the request on a dedicated connection. A 101 to WebSocket opens a tunnel and ends the exchange; a
 * response with another status is forwarded to the client.
 */
export function forwardUpgrade(options: UpgradeOptions): Step {
  return (exchange) => {
    if (exchange.isClosed) return;
    const headerLines = requestHeaderLines(exchange, options);
    new BackendCall(exchange, headerLines, options, (backend, head) =>
      switched(exchange, backend, head, options),
    ).start();
  };
}

function switched(
  exchange: Exchange,
  backend: Socket,
  head: ResponseHead,
  { tunnels, idleMs, firstBytesOf, trustedProxies }: UpgradeOptions,
): void {
  const { res, entry } = exchange;
  const client = res.socket;
  if (exchange.isClosed || client === null || entry === undefined) {
    backend.destroy();
    return;
  }
  if (!upgradesToWebSocket(head)) {
    backend.destroy();
    exchange.reject(new TollgateError('bad_gateway', 'The backend gave no valid response.'));
    return;
  }
  client.write(switchingHead(responseHeaders(head, exchange)), 'latin1');
  exchange.isSwitched = true;
  res.detachSocket(client);
  res.emit('close');
  const source = sourceOf(exchange, trustedProxies);
  tunnels.open({ client, backend, firstBytes: firstBytesOf(exchange), entry, source, idleMs });
}

function upgradesToWebSocket({ names, lines }: ResponseHead): boolean {
  return names.some(
    (name, i) =>
      name.lowerCase === 'upgrade' && headerValue(name, lines[i] ?? '').toLowerCase() === 'websocket',
  );
}

function switchingHead({ lines, decisive }: ResponseHeaders): string {
  let head = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${lines}`;
  for (let i = 0; i < decisive.length; i += 2) head += headerLine(decisive[i] ?? '', decisive[i + 1] ?? '');
  return `${head}\r\n`;
}
