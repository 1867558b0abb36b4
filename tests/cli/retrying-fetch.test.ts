import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { retryingFetch } from '../../src/cli/api/retrying-fetch.ts';
import { systemRandom } from '../../src/platform/random.ts';

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
  const send = retryingFetch({ retries: 2, random: systemRandom, onWait: () => {} });
  return (await send(new Request(`http://127.0.0.1:${port}/`, { method }))).status;
}

describe('a request of the command line', () => {
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
});
