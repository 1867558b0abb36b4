import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { ReadBuffers } from '../../src/backend/read-buffers.ts';
import { RawHeadResponse } from '../../src/http/node-internals.ts';
import { Exchange } from '../../src/proxy/exchange.ts';
import { ResponseBatcher, ResponseStream } from '../../src/proxy/forwarding/response-stream.ts';
import { withGateway } from './support/with-gateway.ts';

const REQUESTS = 50;

describe('responses that are complete in one turn', () => {
  const stage = withGateway({ backendConnections: REQUESTS });

  it('each reach their own client, whole, also when there are many', async () => {
    const { gateway, backend } = stage;
    const numbers = Array.from({ length: REQUESTS }, (_, number) => number);
    const clients = await Promise.all(
      numbers.map((number) => gateway.send(gateway.head(`GET /<${number}>`))),
    );
    await Promise.all(
      numbers.map(async (number) => {
        const connection = await backend.connection(number);
        await connection.head();
      }),
    );
    for (const connection of backend.connections) {
      const path = /^GET \/(\S+) /.exec(connection.text)?.[1] ?? '';
      connection.send(`HTTP/1.1 200 OK\r\nContent-Length: ${path.length}\r\n\r\n${path}`);
    }

    for (const number of numbers)
      await clients[number]?.until((text) => text.endsWith(`\r\n\r\n<${number}>`));
  });

  it('stay as they were read until they are written', async () => {
    const { exchange, written } = begun();
    const buffer = new ReadBuffers().take();
    const response = responseTo(exchange);
    buffer.target.write('the body');
    response.push(buffer.target.subarray(0, 8), buffer);
    response.end(new ResponseBatcher());

    expect(buffer.isShared).toBe(true);
    await endOfTurn();
    expect(written()).toMatch(/\r\n\r\nthe body$/);
    expect(buffer.isShared).toBe(false);
  });

  it('are written although one of them fails', async () => {
    const batcher = new ResponseBatcher();
    const buffer = new ReadBuffers().take();
    const [failing, other] = [begun(), begun()];
    failing.exchange.res.writeLines = () => {
      throw new Error('a fault');
    };
    for (const { exchange } of [failing, other]) {
      const response = responseTo(exchange);
      response.push(buffer.target.subarray(0, 8), buffer);
      response.end(batcher);
    }
    await endOfTurn();

    expect(other.written()).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    expect(failing.exchange.error?.code).toBe('internal_error');
    expect(failing.exchange.req.socket.destroyed).toBe(true);
    expect(buffer.isShared).toBe(false);
  });
});

/** An exchange whose response goes nowhere, and what was written of it. */
function begun() {
  let text = '';
  const socket = new Socket();
  socket._write = (chunk: Buffer | string, encoding, done) => {
    text +=
      typeof chunk === 'string' ? Buffer.from(chunk, encoding).toString('latin1') : chunk.toString('latin1');
    done();
  };
  const req = new IncomingMessage(socket);
  const res = new RawHeadResponse(req);
  res.assignSocket(socket);
  const target = { target: '/', path: '/', decodedPath: undefined, authority: undefined };
  const head = { ...target, host: 'a', body: 'none', expectsContinue: false } as const;
  const exchange = new Exchange([], { req, res, head, requestId: 'one', startedAtMs: 0 });
  return { exchange, written: () => text };
}

function responseTo(exchange: Exchange): ResponseStream {
  const headers = { lines: '', decisive: ['Content-Length', '8'], hasDate: true };
  return new ResponseStream(
    exchange,
    { pause() {}, resume() {} },
    { status: 200, reason: 'OK', headers, length: 8 },
  );
}
