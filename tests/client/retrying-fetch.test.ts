import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { mayBeReceived, retryingFetch } from '../../src/client/retrying-fetch.ts';
import { fakeTimeouts } from '../support/fake-timeouts.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';

let server: Server;
let received: IncomingMessage[];
afterEach(() => void server.close());

/** The port of a server that responds like this. */
async function listen(respond: RequestListener): Promise<number> {
  server = createServer(respond);
  return listenOnLoopback(server);
}

/** The last response to a request to a server that gives these statuses one after the other, all with this body. */
async function responseAfter(
  method: string,
  statuses: readonly number[],
  { headers = {}, body = '' }: { headers?: Record<string, string>; body?: string } = {},
): Promise<Response> {
  received = [];
  const port = await listen((req, res) => {
    res.statusCode = statuses[received.push(req) - 1] ?? 500;
    res.end(body);
  });
  const send = retryingFetch({ retries: 2 });
  return send(new Request(`http://127.0.0.1:${port}/`, { method, headers }));
}

async function statusAfter(
  method: string,
  statuses: readonly number[],
  headers: Record<string, string> = {},
): Promise<number> {
  return (await responseAfter(method, statuses, { headers })).status;
}

const bodyWith = (code: string) => JSON.stringify({ error: 'Try again shortly.', code });

describe('a request of the client', () => {
  it.each([502, 503, 504, 429])('that gets %i is sent again, a POST with the same key', async (status) => {
    expect(await statusAfter('POST', [status, 201])).toBe(201);
    const keys = received.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), keys[0]]);
  });

  it.each(['/tollgate/config/diff', '/rate-limit/gold/preview'])(
    'to %s, which changes nothing, has no key and leaves no stored response',
    async (path) => {
      received = [];
      const port = await listen((req, res) => {
        res.writeHead(received.push(req) === 1 ? 503 : 200).end();
      });
      const request = new Request(`http://127.0.0.1:${port}${path}`, { method: 'POST' });
      expect((await retryingFetch()(request)).status).toBe(200);
      expect(received.map(({ headers }) => headers['idempotency-key'])).toEqual([undefined, undefined]);
    },
  );

  it.each([502, 504])('to delete that gets %i is not sent again: it may be done', async (status) => {
    expect(await statusAfter('DELETE', [status, 404])).toBe(status);
    expect(received).toHaveLength(1);
  });

  const CONDITIONAL = [
    ['PATCH', { 'if-match': '"a-1"' }],
    ['PUT', { 'if-none-match': '*' }],
  ] as const;

  it.each(CONDITIONAL)(
    'to %s with %j that gets 504 is not sent again: it may be done',
    async (method, headers) => {
      expect(await statusAfter(method, [504, 412], headers)).toBe(504);
      expect(received).toHaveLength(1);
    },
  );

  it.each(CONDITIONAL)(
    'to %s with %j whose connection is reset is not sent again',
    async (method, headers) => {
      received = [];
      const port = await listen((req, res) => {
        if (received.push(req) === 1) res.socket?.resetAndDestroy();
        else res.writeHead(412).end();
      });
      const request = new Request(`http://127.0.0.1:${port}/`, { method, headers });
      await expect(retryingFetch()(request)).rejects.toThrow('fetch failed');
      expect(received).toHaveLength(1);
    },
  );

  it.each(CONDITIONAL)(
    'to %s with %j that the gateway itself puts off is sent again',
    async (method, headers) => {
      expect(await statusAfter(method, [503, 200], headers)).toBe(200);
    },
  );

  it.each([...CONDITIONAL, ['DELETE', {}] as const])(
    'to %s with %j that gets 503 store_unavailable is not sent again: it may be done',
    async (method, headers) => {
      const body = bodyWith('store_unavailable');
      const response = await responseAfter(method, [503, 412], { headers, body });
      expect([response.status, await response.text()]).toEqual([503, body]);
      expect(received).toHaveLength(1);
    },
  );

  it.each(CONDITIONAL)('to %s with %j that gets 503 overloaded is sent again', async (method, headers) => {
    const { status } = await responseAfter(method, [503, 200], { headers, body: bodyWith('overloaded') });
    expect(status).toBe(200);
  });

  it('to change something without a condition that gets 504 is sent again', async () => {
    expect(await statusAfter('PATCH', [504, 200])).toBe(200);
  });

  it('to change something without a condition that gets 503 store_unavailable is sent again', async () => {
    const { status } = await responseAfter('PATCH', [503, 200], { body: bodyWith('store_unavailable') });
    expect(status).toBe(200);
  });

  it('to delete that the gateway itself puts off is sent again', async () => {
    expect(await statusAfter('DELETE', [503, 204])).toBe(204);
  });

  it('is not sent again before Retry-After has passed, and not at all where that is too long', async () => {
    const waits: number[] = [];
    received = [];
    const port = await listen((req, res) => {
      const isFirst = received.push(req) === 1;
      res.writeHead(isFirst ? 429 : 200, { 'retry-after': '1' }).end();
    });
    const url = `http://127.0.0.1:${port}/`;
    const onWait = (_reason: string, waitMs: number) => void waits.push(waitMs);
    const impatient = await retryingFetch({ longestWaitMs: 999, onWait })(new Request(url));
    expect([impatient.status, waits]).toEqual([429, []]);
    received = [];
    expect((await retryingFetch({ onWait })(new Request(url))).status).toBe(200);
    expect(waits).toEqual([1000]);
  });

  describe('with a timeout', () => {
    let begun: PromiseWithResolvers<ServerResponse>;
    let response: ServerResponse;
    beforeEach(() => {
      fakeTimeouts();
      begun = Promise.withResolvers();
    });
    afterEach(() => {
      jest.useRealTimers();
      response.destroy();
    });

    /** The response to a request whose own response the test writes. */
    async function send(): Promise<Response> {
      const port = await listen((_req, res) => begun.resolve(res));
      const sent = retryingFetch()(new Request(`http://127.0.0.1:${port}/`));
      response = await begun.promise;
      return sent;
    }
    /** The body of a response whose head has come. */
    async function bodyOf(contentType: string) {
      void begun.promise.then((res) => res.writeHead(200, { 'content-type': contentType }).flushHeaders());
      const { body } = await send();
      if (body === null) throw new Error('there is no body');
      return body.getReader();
    }

    it('is given up if no head of a response comes', async () => {
      void begun.promise.then(() => jest.advanceTimersByTime(60_000));
      await expect(send()).rejects.toMatchObject({ name: 'TimeoutError' });
    });

    it.each(['text/csv', 'text/event-stream'])(
      'gets a response of %s that takes longer, as long as parts of it come',
      async (contentType) => {
        const reader = await bodyOf(contentType);
        for (const part of ['one', 'two', 'three']) {
          const read = reader.read();
          await jest.advanceTimersByTimeAsync(40_000);
          response.write(part);
          expect(Buffer.from((await read).value).toString()).toBe(part);
        }
        // Nor does it count how long the reader takes.
        await jest.advanceTimersByTimeAsync(120_000);
        response.end();
        expect((await reader.read()).done).toBe(true);
      },
    );

    it('gives up a response that goes silent', async () => {
      const reader = await bodyOf('text/csv');
      response.write('one');
      await reader.read();
      const read = expect(reader.read()).rejects.toMatchObject({ name: 'TimeoutError' });
      await jest.advanceTimersByTimeAsync(60_000);
      await read;
    });

    it('gets a stream of events that goes silent', async () => {
      const reader = await bodyOf('text/event-stream');
      const read = reader.read();
      await jest.advanceTimersByTimeAsync(120_000);
      response.end('late');
      expect(Buffer.from((await read).value).toString()).toBe('late');
    });
  });

  describe('that may have been carried out, and then only gets 503,', () => {
    const others = bodyWith('overloaded');
    /** To a POST whose first attempt gets this; all others get 503 `overloaded`. */
    async function resultAfter(first: RequestListener, method = 'POST'): Promise<Response> {
      received = [];
      const port = await listen((req, res) => {
        if (received.push(req) === 1) first(req, res);
        else res.writeHead(503, { 'retry-after': '0' }).end(others);
      });
      return retryingFetch({ retries: 2 })(new Request(`http://127.0.0.1:${port}/`, { method }));
    }

    it('rejects with the error of its connection', async () => {
      await expect(resultAfter((_req, res) => res.socket?.resetAndDestroy())).rejects.toMatchObject({
        cause: { code: 'ECONNRESET' },
      });
      expect(received).toHaveLength(3);
    });

    it.each([
      ['504 of a proxy', 504, '<html>'],
      ['503 store_unavailable', 503, bodyWith('store_unavailable')],
    ])('gets the %s', async (_what, status, body) => {
      for (const method of ['POST', 'PATCH']) {
        const response = await resultAfter((_req, res) => res.writeHead(status).end(body), method);
        expect([response.status, await response.text()]).toEqual([status, body]);
        server.close();
      }
    });

    it('is not sent where a header has what none can carry, and not again', async () => {
      received = [];
      const port = await listen((req, res) => res.end(String(received.push(req))));
      const headers = { 'x-audit-reason': '\u001b[31mred' };
      const waits: string[] = [];
      const sent = retryingFetch({ retries: 2, onWait: (reason) => void waits.push(reason) })(
        new Request(`http://127.0.0.1:${port}/`, { method: 'POST', headers }),
      );
      const error = await sent.catch((thrown: unknown) => thrown);
      expect([mayBeReceived(error), waits, received]).toEqual([false, [], []]);
    });

    it.each([Number.POSITIVE_INFINITY, 2 ** 31])(
      'is waited for with a timeout of %d ms',
      async (timeoutMs) => {
        // Later than a timer ends that is too long for the runtime.
        const port = await listen((_req, res) => void setTimeout(() => res.end('late'), 50));
        const response = await retryingFetch({ timeoutMs })(new Request(`http://127.0.0.1:${port}/`));
        expect(await response.text()).toBe('late');
      },
    );

    it('gets the last response where it changes nothing', async () => {
      const response = await resultAfter((_req, res) => res.writeHead(504).end(), 'GET');
      expect(await response.text()).toBe(others);
    });
  });

  it('to make something that gets half of a response is sent again with the same key', async () => {
    const keys: unknown[] = [];
    const port = await listen((req, res) => {
      res.writeHead(201, { 'content-length': 4 });
      if (keys.push(req.headers['idempotency-key']) === 1) res.write('ha', () => res.socket?.end());
      else res.end('made');
    });
    const response = await retryingFetch()(new Request(`http://127.0.0.1:${port}/`, { method: 'POST' }));
    expect([response.status, await response.text()]).toEqual([201, 'made']);
    expect(keys).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), keys[0]]);
  });

  it('that is aborted while it waits is not sent again', async () => {
    received = [];
    const port = await listen((req, res) => {
      received.push(req);
      res.writeHead(503, { 'retry-after': '5' }).end();
    });
    const controller = new AbortController();
    const send = retryingFetch({ onWait: () => controller.abort(new Error('left')) });
    const { signal } = controller;
    await expect(send(new Request(`http://127.0.0.1:${port}/`, { signal }))).rejects.toThrow('left');
    expect(received).toHaveLength(1);
  });
});
