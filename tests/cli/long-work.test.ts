import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { fakeTimeouts } from '../support/fake-timeouts.ts';
import { runInProcess } from './support/run-in-process.ts';

/** What the commands read of each response. */
const BODY = {
  ...{ valid: true, entries: 3, rateLimitId: 'gold', limit: 1, period: '1s', message: 'deleted' },
  ...{ changes: [], secrets: [], summary: { create: 0, update: 0, delete: 0, unchanged: 1 }, digest: 'd' },
};

let gateway: Server;
/** A request, and how long it takes; all others take no time. */
let slow: { readonly method: string; readonly path: string; readonly takesMs: number } | undefined;

beforeEach(async () => {
  slow = undefined;
  fakeTimeouts();
  gateway = createServer(({ method = '', url = '' }, res) => {
    // The proxy of a test has responded.
    if (res.writableEnded) return;
    if (method === slow?.method && url.startsWith(slow.path)) jest.advanceTimersByTime(slow.takesMs);
    res.writeHead(200, { 'X-Request-Id': 'a', 'Content-Type': 'application/json' }).end(JSON.stringify(BODY));
  }).listen(0, '127.0.0.1');
  await once(gateway, 'listening');
});
afterEach(() => {
  jest.useRealTimers();
  gateway.closeAllConnections();
  gateway.close();
});

function tollgate(...words: readonly string[]) {
  const { port } = gateway.address() as AddressInfo;
  return runInProcess([...words, '--url', `http://127.0.0.1:${port}`], { TOLLGATE_TOKEN: 'any' });
}

describe('a response that comes once all of the work is done', () => {
  it.each([
    ['audit verify', 'GET', '/tollgate/audit-log/verify'],
    ['plans delete gold --rebind-to silver --yes', 'DELETE', '/rate-limit/gold'],
    ['config apply k8s/components/configuration/gateway.yaml --yes', 'POST', '/tollgate/config/apply'],
  ])('may take more than a minute: tollgate %s', async (words, method, path) => {
    slow = { method, path, takesMs: 240_000 };
    expect(await tollgate(...words.split(' '))).toMatchObject({ code: 0 });
    slow = { method, path, takesMs: 290_000 };
    expect(await tollgate(...words.split(' '))).toMatchObject({
      code: 75,
      stderr: expect.stringContaining('The gateway did not respond in time'),
    });
  });

  it('is not waited for where it should come at once', async () => {
    slow = { method: 'GET', path: '/tollgate/whoami', takesMs: 60_000 };
    expect(await tollgate('whoami')).toMatchObject({ code: 75 });
  });
});

describe('behind a proxy that does not wait for all of the work', () => {
  let attempts: number;
  /** From now on each request of this kind gets 504 of the proxy, and then `later`. */
  function behindProxy(method: string, path: string, later: (res: ServerResponse) => void): void {
    jest.useRealTimers();
    attempts = 0;
    gateway.prependListener('request', (req: IncomingMessage, res: ServerResponse) => {
      if (req.method !== method || !req.url?.startsWith(path)) return;
      attempts += 1;
      if (attempts === 1) res.writeHead(504).end('<html>');
      else later(res);
    });
  }

  it('a verification is not begun a second time', async () => {
    behindProxy('GET', '/tollgate/audit-log/verify', (res) => res.end());
    expect(await tollgate('audit', 'verify')).toMatchObject({ code: 75 });
    expect(attempts).toBe(1);
  });

  it('a change that is still being made is no conflict', async () => {
    const body = JSON.stringify({ error: 'It is under way.', code: 'idempotency_in_progress' });
    behindProxy('POST', '/tollgate/config/apply', (res) =>
      res.writeHead(409, { 'Retry-After': '0', 'Content-Type': 'application/json' }).end(body),
    );
    const file = 'k8s/components/configuration/gateway.yaml';
    const { code, stderr } = await tollgate('config', 'apply', file, '--yes');
    expect([code, attempts]).toEqual([75, 4]);
    expect(stderr).toContain('under way. If the command makes a change, it may have been made.');
  });
});
