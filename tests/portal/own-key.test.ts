import { createServer, type RequestListener } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { SelfService } from '../../src/portal/portal/own-key.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';

/** After which the portal no longer waits for the gateway. */
const TIMEOUT_MS = 30_000;

let respond: RequestListener = () => undefined;
const server = createServer((req, res) => respond(req, res));
let service: SelfService;
beforeAll(async () => {
  const port = await listenOnLoopback(server);
  service = new SelfService(`http://127.0.0.1:${port}/tollgate/self`, 'tg_secret');
});
afterEach(() => {
  jest.useRealTimers();
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

/** A page in place of the gateway, as networks show before they let a device through. */
const page: RequestListener = (_req, res) =>
  void res.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>Welcome to our network</p>');
const cutOff: RequestListener = (_req, res) => {
  res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '1000' });
  res.write('{"name":', () => res.destroy());
};

/** Resolves when the server has a request, to which it never responds. */
const silence = () =>
  new Promise<void>((resolve) => {
    respond = () => resolve();
  });

describe('what the portal asks of the gateway', () => {
  it.each<[string, string, RequestListener, () => Promise<unknown>]>([
    ['the key', 'a page', page, () => service.key()],
    ['the key', 'cut off', cutOff, () => service.key()],
    ['usage', 'a page', page, () => service.usage({})],
    ['usage', 'cut off', cutOff, () => service.usage({})],
    ['a file of usage', 'cut off', cutOff, () => service.usageFile({})],
    ['a rotation', 'a page', page, () => service.rotate(3600, 'attempt')],
    ['a rotation', 'cut off', cutOff, () => service.rotate(3600, 'attempt')],
  ])('fails with a sentence where the response for %s is %s', async (_what, _how, response, ask) => {
    respond = response;
    await expect(ask()).rejects.toMatchObject({
      ...{ name: 'SelfServiceFault', code: 'broken' },
      message: 'There was no response. Check your connection, then try again.',
    });
  });

  it.each<[string, () => Promise<unknown>]>([
    ['the key', () => service.key()],
    ['a rotation', () => service.rotate(3600, 'attempt')],
  ])('fails with a sentence where the gateway is silent: %s', async (_what, ask) => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
    const asked = silence();
    const failure = ask().catch((fault: unknown) => fault);
    await asked;
    jest.advanceTimersByTime(TIMEOUT_MS);
    expect(await failure).toMatchObject({ code: 'broken', isRejection: false });
  });
});
