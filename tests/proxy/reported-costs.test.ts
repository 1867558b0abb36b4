import { describe, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import { planOf } from './support/gateway.ts';
import { withGateway } from './support/with-gateway.ts';

const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n';

function withHead(...lines: readonly string[]): string {
  return ['HTTP/1.1 200 OK', 'Content-Length: 2', ...lines, '', 'ok'].join('\r\n');
}

function remaining(response: string): string | undefined {
  return /^X-RateLimit-Remaining: (\d+)/im.exec(response)?.[1];
}

describe('a cost that the backend reports', () => {
  const stage = withGateway();
  const costs = [{ path: '/chat', cost: 'response' as const, reserve: 5 }];

  async function use(response: string, request = 'GET /chat'): Promise<string> {
    stage.backend.respond(response);
    const client = await stage.gateway.send(stage.gateway.head(request, 'Connection: close'));
    return client.ended();
  }

  /** Of another request, which costs 1. */
  async function left(): Promise<number> {
    await stage.gateway.costSettler.stop();
    return Number(remaining(await use(withHead(), 'GET /other')));
  }

  it.each([
    ['more than the reserve, in the head', withHead('Tollgate-Cost: 30'), 70],
    ['less than the reserve, in the head', withHead('tollgate-cost: 2'), 98],
    ['nothing at all', withHead('Tollgate-Cost: 0'), 100],
    ['more than there is', withHead('Tollgate-Cost: 500'), 0],
    ['in a trailer', `${CHUNKED}TollGate-Cost:  42\r\n\r\n`, 58],
    [
      'in the head and in a trailer',
      `${CHUNKED.replace('\r\n\r\n', '\r\nTollgate-Cost: 7\r\n\r\n')}Tollgate-Cost: 9\r\n\r\n`,
      93,
    ],
  ])('is settled: %s', async (_what, response, rest) => {
    await stage.gateway.change({ plan: planOf({ limit: 100, costs }) });
    const got = await use(response);
    expect(remaining(got)).toBe('95');
    expect(got).not.toMatch(/tollgate-cost/i);
    await until(() => stage.gateway.recorded.length === 1);
    expect(stage.gateway.recorded[0]?.units).toBe(rest === 0 ? 500 : 100 - rest);
    await stage.gateway.costSettler.stop();
    expect(stage.gateway.costSettler.counts).toMatchObject({ settled: 1, missing: 0, malformed: 0 });
    if (rest === 0) expect(await use(withHead(), 'GET /other')).toMatch(/^HTTP\/1\.1 429 /);
    else expect(await left()).toBe(rest - 1);
  });

  it.each([
    ['GET /chat', ['connection: keep-alive, te', 'te: trailers']],
    ['GET /other', ['connection: keep-alive']],
  ])('in a trailer is asked for exactly where there may be one: %s', async (request, expected) => {
    await stage.gateway.change({ plan: planOf({ limit: 100, costs }) });
    await use(withHead(), request);
    const lines = stage.backend.connections[0]?.text.split('\r\n') ?? [];
    expect(lines.filter((line) => /^(connection|te):/i.test(line))).toEqual(expected);
  });

  it.each([
    ['missing', withHead()],
    ['malformed', withHead('Tollgate-Cost: 1.5')],
    ['malformed', withHead('Tollgate-Cost: -3')],
    ['malformed', withHead('Tollgate-Cost: 1', 'Tollgate-Cost: 2')],
    ['malformed', withHead('Tollgate-Cost:')],
  ] as const)('leaves the reserve as it is when it is %s', async (result, response) => {
    await stage.gateway.change({ plan: planOf({ limit: 100, costs }) });
    await use(response);
    await until(() => stage.gateway.recorded.length === 1);
    expect(stage.gateway.recorded[0]?.units).toBe(5);
    expect(await left()).toBe(94);
    expect(stage.gateway.costSettler.counts).toMatchObject({ settled: 0, [result]: 1 });
  });

  it('is settled when it comes with the head of a switch to WebSocket', async () => {
    await stage.gateway.change({ plan: planOf({ limit: 100, costs }) });
    stage.backend.respond(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nTollgate-Cost: 30\r\n\r\n',
    );
    const client = await stage.gateway.send(
      stage.gateway.head(
        'GET /chat',
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
      ),
    );
    expect(await client.head()).toMatch(/^HTTP\/1\.1 101 (?![\s\S]*tollgate-cost)/i);
    await until(() => stage.gateway.recorded.length === 1);
    expect(await left()).toBe(69);
  });

  it('gives room back at once to requests that were rejected for the reserve', async () => {
    await stage.gateway.change({ plan: planOf({ limit: 6, costs }) });
    await use(withHead('Tollgate-Cost: 1'));
    await until(() => stage.gateway.costSettler.counts.settled === 1);
    await stage.gateway.costSettler.stop();
    expect(await use(withHead('Tollgate-Cost: 4'))).toMatch(/^HTTP\/1\.1 200 /);
    await until(() => stage.gateway.costSettler.counts.settled === 2);
    expect(await use(withHead())).toMatch(/^HTTP\/1\.1 429 /);
    expect(stage.gateway.costSettler.counts).toMatchObject({ settled: 2, missing: 0 });
  });

  it('never reaches a client, and counts nothing for a request with a known cost', async () => {
    await stage.gateway.change({ plan: planOf({ limit: 100, costs }) });
    const got = await use(withHead('Tollgate-Cost: 30'), 'GET /other');
    expect(got).not.toMatch(/tollgate-cost/i);
    expect(await left()).toBe(98);
  });
});
