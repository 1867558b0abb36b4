import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { runInProcess } from './support/run-in-process.ts';

/** Everything but `setTimeout`: the timers of the command are those of the test. */
const REAL = ['nextTick', 'queueMicrotask', 'setImmediate', 'setInterval', 'performance', 'Date'] as const;
/** What the commands read of each response. */
const BODY = {
  ...{ valid: true, entries: 3, rateLimitId: 'gold', limit: 1, period: '1s', message: 'deleted' },
  ...{ changes: [], secrets: [], summary: { create: 0, update: 0, delete: 0, unchanged: 1 }, digest: 'd' },
};

let gateway: Server;
/** A request, and how long it takes; all others take no time. */
let slow: { readonly method: string; readonly path: string; readonly takesMs: number };

beforeEach(async () => {
  jest.useFakeTimers({ doNotFake: [...REAL] });
  gateway = createServer(({ method, url }, res) => {
    if (method === slow.method && url?.startsWith(slow.path)) jest.advanceTimersByTime(slow.takesMs);
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
