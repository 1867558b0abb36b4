import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { BodyBudget } from '../../src/http/body-budget.ts';
import { errorResponse } from '../../src/http/errors/error-responses.ts';
import { sendError } from '../../src/http/errors/send-error.ts';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { until } from '../support/until.ts';

const LIMIT_BYTES = 90;

describe('the room for large bodies', () => {
  let server: Server;
  let clients: RawPeer[];
  /** Requests whose bodies were read, and that wait for their responses. */
  let read: { readonly length: number; respond(): void }[];

  beforeEach(() => {
    clients = [];
    read = [];
  });
  afterEach(async () => {
    for (const client of clients) client.destroy();
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  });

  async function start(deadlineMs = 60_000): Promise<void> {
    const budget = new BodyBudget({ freeBytes: 10, totalBytes: 100, deadlineMs });
    server = createServer((req, res) => {
      budget.read(req, res, LIMIT_BYTES).then(
        ({ length }) => read.push({ length, respond: () => void res.end('read') }),
        (error: unknown) => sendError(res, errorResponse(error)),
      );
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  }

  /** Sends `bytes` of a body of which `announced` are announced; undefined: in chunks, without the last one. */
  async function send(bytes: number, announced: number | undefined = bytes): Promise<RawPeer> {
    const client = await RawPeer.connect((server.address() as AddressInfo).port);
    clients.push(client);
    client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${announced}\r\n\r\n${'x'.repeat(bytes)}`);
    return client;
  }

  async function sendChunked(bytes: number): Promise<RawPeer> {
    const client = await RawPeer.connect((server.address() as AddressInfo).port);
    clients.push(client);
    const size = bytes.toString(16);
    client.send(
      `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${size}\r\n${'x'.repeat(bytes)}\r\n0\r\n\r\n`,
    );
    return client;
  }

  it.each([
    ['with a length', () => send(80)],
    ['in chunks', () => sendChunked(80)],
  ])('is for all requests together, %s: 503 with Retry-After beyond it', async (_what, sendMore) => {
    await start();
    const first = await send(80);
    await until(() => read.length === 1);
    const rejected = await sendMore();
    expect(await rejected.until((text) => text.includes('"overloaded"'))).toMatch(
      /^HTTP\/1\.1 503 .*\r\nRetry-After: \d+\r\n/s,
    );
    expect(read).toHaveLength(1);
    read[0]?.respond();
    await first.until((text) => text.endsWith('read'));
    await sendMore();
    await until(() => read.length === 2);
    expect(read[1]?.length).toBe(80);
  });

  it('is not needed for small bodies', async () => {
    await start();
    await send(80);
    await until(() => read.length === 1);
    await send(40);
    await until(() => read.length === 2);
    for (let small = 3; small <= 8; small += 1) {
      await send(10);
      await until(() => read.length === small);
    }
    expect(read.map(({ length }) => length)).toEqual([80, 40, 10, 10, 10, 10, 10, 10]);
  });

  it('is taken by what has arrived, not by what was announced', async () => {
    await start();
    for (let slow = 0; slow < 5; slow += 1) await send(12, 90);
    await send(80);
    await until(() => read.length === 1);
  });

  it('is given back when a client leaves, and when a body is too large', async () => {
    await start();
    for (let round = 0; round < 3; round += 1) {
      const leaving = await send(80, 85);
      const beyond = await sendChunked(91);
      await beyond.until((text) => /"(body_too_large|overloaded)"/.test(text));
      leaving.destroy();
      await until(async () => {
        const client = await send(90);
        await until(() => read.length > 0 || client.text.includes('503'));
        return read.length > 0;
      });
      read.pop()?.respond();
    }
  });

  it('is taken from a body that is not complete in time', async () => {
    await start(20);
    const slow = await send(80, 85);
    expect(await slow.until((text) => text.includes('"request_timeout"'))).toMatch(/^HTTP\/1\.1 408 /);
    await send(90);
    await until(() => read.length === 1);
  });
});
