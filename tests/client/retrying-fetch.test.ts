import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { retryingFetch } from '../../src/client/retrying-fetch.ts';

let server: Server;
let received: IncomingMessage[];
afterEach(() => {
  server.close();
});

/** The status of a request to a server that gives these statuses one after the other. */
async function statusAfter(method: string, statuses: readonly number[]): Promise<number> {
  received = [];
  server = createServer((req, res) => {
    res.statusCode = statuses[received.push(req) - 1] ?? 500;
    res.end();
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const send = retryingFetch({ retries: 2 });
  return (await send(new Request(`http://127.0.0.1:${port}/`, { method }))).status;
}

describe('a request of the client', () => {
  it.each([502, 503, 504, 429])('that gets %i is sent again, a POST with the same key', async (status) => {
    expect(await statusAfter('POST', [status, 201])).toBe(201);
    const keys = received.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), keys[0]]);
  });

  it.each([502, 504])('to delete that gets %i is not sent again: it may be done', async (status) => {
    expect(await statusAfter('DELETE', [status, 404])).toBe(status);
    expect(received).toHaveLength(1);
  });

  it('to delete that the gateway itself puts off is sent again', async () => {
    expect(await statusAfter('DELETE', [503, 204])).toBe(204);
  });

  it('is not sent again before Retry-After has passed, and not at all where that is too long', async () => {
    const waits: number[] = [];
    received = [];
    server = createServer((req, res) => {
      const isFirst = received.push(req) === 1;
      res.writeHead(isFirst ? 429 : 200, { 'retry-after': '1' }).end();
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const onWait = (_reason: string, waitMs: number) => void waits.push(waitMs);
    const impatient = await retryingFetch({ longestWaitMs: 999, onWait })(new Request(url));
    expect([impatient.status, waits]).toEqual([429, []]);
    received = [];
    expect((await retryingFetch({ onWait })(new Request(url))).status).toBe(200);
    expect(waits).toEqual([1000]);
  });

  it('that is aborted while it waits is not sent again', async () => {
    received = [];
    server = createServer((req, res) => {
      received.push(req);
      res.writeHead(503, { 'retry-after': '5' }).end();
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    const controller = new AbortController();
    const send = retryingFetch({ onWait: () => controller.abort(new Error('left')) });
    const { signal } = controller;
    await expect(send(new Request(`http://127.0.0.1:${port}/`, { signal }))).rejects.toThrow('left');
    expect(received).toHaveLength(1);
  });
});
