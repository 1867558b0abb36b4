import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { TestGateway } from './support/gateway.ts';
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY, trustLocalhost } from './support/localhost-certificate.ts';
import { RawBackend } from './support/raw-backend.ts';
import { RawPeer } from './support/raw-peer.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const ASKS = ['Connection: Upgrade', 'Upgrade: websocket'];

describe('a backend with a path in its URL', () => {
  it.each([
    ['/base', '/a%20b?x=%2f', '/base/a%20b?x=%2f'],
    ['/base/', '//a', '/base//a'],
    ['/b%2Fc', '/', '/b%2Fc/'],
    ['/', '/a', '/a'],
    ['', '/?q', '/?q'],
  ])('%j gets %j as %j', async (base, target, expected) => {
    const backend = await RawBackend.start();
    const gateway = await TestGateway.start(backend.url + base);
    try {
      backend.respond(OK);
      const client = await gateway.send(gateway.head(`GET ${target}`));
      await client.until((text) => text.endsWith('ok'));
      expect(backend.received.split('\r\n')[0]).toBe(`GET ${expected} HTTP/1.1`);
    } finally {
      await gateway.stop();
      await backend.stop();
    }
  });
});

describe('a backend with TLS', () => {
  let server: Server;
  let peers: RawPeer[];
  let names: (string | false | null)[];
  let gateway: TestGateway;
  let distrust: () => void;

  beforeEach(async () => {
    distrust = trustLocalhost();
    peers = [];
    names = [];
    server = createServer({
      cert: LOCALHOST_CERTIFICATE,
      key: LOCALHOST_KEY,
      ALPNProtocols: ['h2', 'http/1.1'],
    });
    server.on('secureConnection', (socket: TLSSocket) => {
      names.push(socket.servername);
      const peer = new RawPeer(socket);
      peers.push(peer);
      peer.socket.on('data', () => {
        if (!peer.text.endsWith('\r\n\r\n')) return;
        peer.send(
          /upgrade: websocket/.test(peer.text)
            ? 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello'
            : OK,
        );
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(async () => {
    distrust();
    await gateway.stop();
    for (const peer of peers) peer.destroy();
    server.close();
    await once(server, 'close');
  });
  const url = (name: string): string => `https://${name}:${(server.address() as AddressInfo).port}`;

  it('is asked by its own name, in HTTP/1.1, on connections that are used again', async () => {
    gateway = await TestGateway.start(url('localhost'));
    const client = await gateway.connect();
    for (let i = 2; i <= 4; i += 1) {
      client.send(gateway.head('GET /'));
      await client.until((text) => text.split('\r\n\r\nok').length === i);
    }
    expect(names).toEqual(['localhost']);
    expect(peers[0]?.text).toContain(`\r\nhost: localhost:${(server.address() as AddressInfo).port}\r\n`);
    expect(peers[0]?.text).toContain('\r\nX-Forwarded-Host: api.example.com\r\n');
  });

  it('is upgraded too', async () => {
    gateway = await TestGateway.start(url('localhost'));
    const client = await gateway.send(gateway.head('GET /', ...ASKS));
    await client.until((text) => text.endsWith('hello'));
    client.send('there');
    await peers[0]?.until((text) => text.endsWith('there'));
  });

  it('that is not trusted, or that has another name, is 502', async () => {
    distrust();
    gateway = await TestGateway.start(url('localhost'));
    const client = await gateway.send(gateway.head('GET /'));
    expect(await client.until((text) => text.endsWith('}'))).toMatch(/^HTTP\/1\.1 502 /);
    await gateway.stop();
    distrust = trustLocalhost();
    gateway = await TestGateway.start(url('127.0.0.1'));
    const other = await gateway.send(gateway.head('GET /'));
    expect(await other.until((text) => text.endsWith('}'))).toMatch(/^HTTP\/1\.1 502 /);
    expect(peers.map(({ text }) => text).join('')).toBe('');
  });
});
