import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { createOpsServer, type OpsLimits } from '../../src/app/ops/ops-server.ts';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { until } from '../support/until.ts';

describe('the ops port', () => {
  const scrapes: PromiseWithResolvers<{ readonly contentType: string; readonly text: string }>[] = [];
  const clients: RawPeer[] = [];
  const PATIENT = { headMs: 60_000, idleMs: 60_000, connections: 3 };
  let ops: Server;

  async function start(limits: OpsLimits = PATIENT): Promise<void> {
    const metrics = () => {
      const scrape = Promise.withResolvers<{ readonly contentType: string; readonly text: string }>();
      scrapes.push(scrape);
      return scrape.promise;
    };
    ops = createOpsServer({ readiness: async () => ({ ready: true, components: {} }), metrics }, limits);
    await once(ops.listen(0, '127.0.0.1'), 'listening');
  }

  afterEach(async () => {
    scrapes.length = 0;
    for (const client of clients.splice(0)) client.destroy();
    ops.closeAllConnections();
    await new Promise((closed) => ops.close(closed));
  });

  async function connect(bytes: string): Promise<RawPeer> {
    const client = await RawPeer.connect((ops.address() as AddressInfo).port);
    clients.push(client);
    client.send(bytes);
    return client;
  }
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

  it('gives scrapes that come while one runs the result of that one', async () => {
    await start();
    const [first, second] = [await connect(get('/metrics')), await connect(get('/metrics'))];
    const probe = await connect(get('/livez'));
    await probe.until((text) => text.includes('200 OK'));
    expect(scrapes).toHaveLength(1);
    scrapes[0]?.resolve({ contentType: 'text/plain', text: 'metrics' });
    await first.until((text) => text.includes('metrics'));
    await second.until((text) => text.includes('metrics'));
    first.send(get('/metrics'));
    await until(() => scrapes.length === 2);
    scrapes[1]?.reject(new Error('no metrics'));
    await first.until((text) => text.includes('"internal_error"'));
  });

  it('has the limit of 16 KiB for heads that its error names', async () => {
    await start();
    const head = (bytes: number) => `GET /livez HTTP/1.1\r\nHost: a\r\nX-Long: ${'a'.repeat(bytes)}\r\n\r\n`;
    await (await connect(head(15 * 1024))).until((text) => text.includes('200 OK'));
    await (await connect(head(16 * 1024))).until((text) => text.includes('larger than 16 KiB'));
  });

  it('closes a connection whose head does not arrive', async () => {
    await start({ ...PATIENT, headMs: 50 });
    const client = await connect('GET /livez HTTP/1.1\r\nHost');
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('closes a connection that carries nothing', async () => {
    await start({ ...PATIENT, headMs: 50, idleMs: 50 });
    await (await connect('')).ended();
  });

  it('closes a connection beyond the most that it keeps open', async () => {
    await start();
    for (let i = 0; i < 3; i += 1) {
      const kept = await connect(get('/livez'));
      await kept.until((text) => text.includes('200 OK'));
    }
    const beyond = await connect(get('/livez'));
    expect(await beyond.ended()).toBe('');
  });

  it.each<readonly [string, string, number]>([
    ['a malformed version', 'GET /livez HTTP/1.A\r\nHost: a', 400],
    ['another major version', 'GET /livez HTTP/2.0\r\nHost: a', 505],
    ['no final chunked', 'GET /livez HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip', 400],
    ['an unknown coding', 'GET /livez HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked', 501],
    ['no Host', 'GET /livez HTTP/1.1', 400],
    ['two Hosts', 'GET /livez HTTP/1.1\r\nHost: a\r\nHost: b', 400],
    ['a dot segment', 'GET /x/../livez HTTP/1.1\r\nHost: a', 400],
    ['TRACE', 'TRACE /livez HTTP/1.1\r\nHost: a', 405],
  ])('rejects %s once, closes the connection and serves nothing after it', async (_what, head, status) => {
    await start();
    const client = await connect(`${head}\r\n\r\n${get('/livez')}`);
    const all = await client.ended();
    expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
    expect(all).toMatch(/\r\nConnection: close\r\n.*\{"error":/is);
  });

  it('responds to OPTIONS * with its methods', async () => {
    await start();
    const client = await connect(`OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n${get('/livez')}`);
    expect(await client.until((text) => text.includes('200 OK'))).toMatch(
      /^HTTP\/1\.1 204 No Content\r\nAllow: GET, HEAD\r\n/,
    );
  });

  it.each([
    ['GET /other HTTP/1.1', 404, 'not_found'],
    ['POST /livez HTTP/1.1', 405, 'method_not_allowed'],
  ] as const)('rejects %s with %i', async (line, status, code) => {
    await start();
    const client = await connect(`${line}\r\nHost: a\r\nContent-Length: 0\r\n\r\n`);
    const text = await client.until((all) => all.includes(code));
    expect(text).toContain(`HTTP/1.1 ${status}`);
  });
});
