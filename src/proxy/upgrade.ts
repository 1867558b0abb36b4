import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TollgateError } from '../errors.ts';
import { fieldLine, LineResponse } from '../http/line-response.ts';
import { lingeringClose } from '../http/lingering-close.ts';
import { type AnswerHead, fieldValue } from './answer-head.ts';
import { BackendCall, type BackendCallOptions } from './backend-call.ts';
import type { Exchange, Step } from './exchange.ts';
import { type RequestFieldsOptions, requestFields } from './request-fields.ts';
import { type ResponseFields, responseFields } from './response-fields.ts';
import type { Tunnels } from './tunnels.ts';

/** Where and how upgrades are forwarded. */
export interface UpgradeOptions extends BackendCallOptions, RequestFieldsOptions {
  readonly tunnels: Tunnels;
  /** Ends a switched connection that carried no byte for so long. Milliseconds. */
  readonly idleMs: number;
  /** What the client sent behind its head. */
  readonly firstBytesOf: (exchange: Exchange) => Buffer;
}

/**
 * A response on the socket of an upgrade, for which Node makes none: so that an upgrade can be answered like any other request by the
 * same steps. After an answer the connection is closed.
 */
export function responseOn(socket: Socket, req: IncomingMessage): LineResponse {
  const res = new LineResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(socket);
  const onDrain = (): void => {
    res.emit('drain');
  };
  // The server's idle time is set on the socket, but it has stopped listening: a client that does not take what is written is cut.
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
 * The last step of an upgrade: asks the backend on a connection of its own. A 101 to WebSocket makes a tunnel, and ends the exchange
 * as a request; any other answer is the client's as it is.
 */
export function forwardUpgrade(options: UpgradeOptions): Step {
  return (exchange) => {
    if (exchange.isClosed) return;
    const fields = requestFields(exchange, options);
    new BackendCall(exchange, fields, options, (backend, head) =>
      switched(exchange, backend, head, options),
    ).start();
  };
}

function switched(
  exchange: Exchange,
  backend: Socket,
  head: AnswerHead,
  { tunnels, idleMs, firstBytesOf }: UpgradeOptions,
): void {
  const { res, entry } = exchange;
  const client = res.socket;
  if (exchange.isClosed || client === null || entry === undefined) {
    backend.destroy();
    return;
  }
  if (!upgradesToWebSocket(head)) {
    backend.destroy();
    exchange.refuse(new TollgateError('bad_gateway', 'The backend gave no valid answer.'));
    return;
  }
  client.write(switchingHead(responseFields(head, exchange)), 'latin1');
  exchange.isSwitched = true;
  res.detachSocket(client);
  res.emit('close');
  tunnels.open({ client, backend, firstBytes: firstBytesOf(exchange), entry, idleMs });
}

function upgradesToWebSocket({ names, lines }: AnswerHead): boolean {
  return names.some(
    (name, i) =>
      name.lowerCase === 'upgrade' && fieldValue(name, lines[i] ?? '').toLowerCase() === 'websocket',
  );
}

function switchingHead({ lines, decisive }: ResponseFields): string {
  let head = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${lines}`;
  for (let i = 0; i < decisive.length; i += 2) head += fieldLine(decisive[i] ?? '', decisive[i + 1] ?? '');
  return `${head}\r\n`;
}
