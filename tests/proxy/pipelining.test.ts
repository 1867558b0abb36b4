import { describe, expect, it } from '@jest/globals';
import { MANAGEMENT_PORTS, withGateway } from './support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const ASKS = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: abc',
  'Sec-WebSocket-Version: 13',
];

describe.each(MANAGEMENT_PORTS)(
  'requests sent before the answers to those before them, %s',
  (_where, settings) => {
    const stage = withGateway(settings);
    const head = (line: string, ...lines: readonly string[]): string => stage.gateway.head(line, ...lines);

    it('go to the backend one after the other', async () => {
      const client = await stage.gateway.send(
        `${head('POST /1', 'Content-Length: 3')}abc${head('GET /2')}${head('GET /3')}`,
      );
      const backend = await stage.backend.connection();
      for (const n of [1, 2, 3]) {
        await backend.until((text) => text.includes(` /${n} HTTP/1.1`) && text.split('\r\n\r\n').length > n);
        expect(backend.text).not.toContain(` /${n + 1} HTTP/1.1`);
        expect(stage.backend.connections).toHaveLength(1);
        backend.send(OK);
        await client.until((text) => text.split('\r\n\r\nok').length === n + 1);
      }
    });

    it('are answered in order when they are refused', async () => {
      const client = await stage.gateway.send(
        `${head('GET /1')}GET /2 HTTP/1.1\r\nHost: a\r\n\r\n${head('GET /3')}`,
      );
      const backend = await stage.backend.connection();
      await backend.head(0);
      backend.send(OK);
      await backend.head(1);
      backend.send(OK);
      const answers = await client.until((text) => text.split('\r\n\r\nok').length === 3);
      expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 401', 'HTTP/1.1 200']);
    });

    it.each([
      ['a malformed head', 'GET /2 HTTP/1.1\r\nA : b\r\n\r\n', 400],
      ['no HTTP', '\0\0\0', 400],
      ['another version', 'GET /2 HTTP/3.0\r\n\r\n', 505],
    ] as const)('do not lose their answers to %s behind them', async (_what, bytes, status) => {
      const client = await stage.gateway.send(head('GET /1') + bytes);
      const backend = await stage.backend.connection();
      await backend.head();
      expect(await client.staysOpen(50)).toBe(true);
      expect(client.text).toBe('');
      backend.send(OK);
      const all = await client.ended();
      expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', `HTTP/1.1 ${status}`]);
    });

    it('do not lose an answer that has begun to a malformed head behind them', async () => {
      const client = await stage.gateway.send(head('GET /1'));
      const backend = await stage.backend.connection();
      await backend.head();
      backend.send(OK.slice(0, -1));
      await client.until((text) => text.endsWith('\r\n\r\no'));
      client.send('\0\0\0');
      expect(await client.staysOpen(50)).toBe(true);
      backend.send('k');
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 200 .*\r\n\r\nokHTTP\/1\.1 400 /s);
    });

    it('are not looked at behind one that closes the connection, which is answered', async () => {
      const client = await stage.gateway.send(head('GET /1', 'Connection: close') + head('GET /2'));
      const backend = await stage.backend.connection();
      await backend.head();
      backend.send(OK);
      expect((await client.ended()).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
      expect(stage.backend.received).not.toContain('/2');
    });

    it('with a malformed body never reach the backend whole', async () => {
      const client = await stage.gateway.send(
        `${head('GET /1')}${head('POST /2', 'Transfer-Encoding: chunked')}5\r\nhello!\r\n0\r\n\r\n`,
      );
      const backend = await stage.backend.connection();
      await backend.head();
      backend.send(OK);
      const all = await client.ended();
      expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
      expect(stage.backend.received).not.toContain('/2');
    });

    it.each([
      ['an upgrade', ASKS, 'GET /2'],
      ['CONNECT', [], 'CONNECT a.example:443'],
    ] as const)('close the connection when they are %s', async (_what, lines, line) => {
      const client = await stage.gateway.send(head('GET /1') + head(line, ...lines));
      expect(await client.ended()).toBe('');
      expect(stage.backend.received).not.toContain('/2');
    });

    it('close the connection when they are an upgrade behind a request without a key', async () => {
      const client = await stage.gateway.send(`GET /1 HTTP/1.1\r\nHost: a\r\n\r\n${head('GET /2', ...ASKS)}`);
      await client.ended();
      expect(stage.backend.received).toBe('');
    });

    it('are not read without end while an answer is due', async () => {
      const client = await stage.gateway.send(head('GET /1'));
      const backend = await stage.backend.connection();
      await backend.head();
      // Far more than the system keeps for two sockets.
      const flood = Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_000_000));
      client.socket.write(flood);
      let left = -1;
      while (left !== client.socket.writableLength) {
        left = client.socket.writableLength;
        expect(await client.staysOpen(300)).toBe(true);
      }
      expect(left).toBeGreaterThan(0);
      backend.send(OK);
      await client.until((text) => text.includes('\r\n\r\nok') && text.split(' 401 ').length > 20);
    });
  },
);
