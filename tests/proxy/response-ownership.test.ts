import { describe, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import type { RawPeer } from './support/raw-peer.ts';
import { withGateway } from './support/with-gateway.ts';

const EVIL = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil';
const GOOD = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood';

/** Responses that must have no body, and announce one that looks like a response. */
const BODILESS = [
  ['HEAD', `HTTP/1.1 200 OK\r\nContent-Length: ${EVIL.length}\r\n\r\n`],
  ['GET', `HTTP/1.1 204 No Content\r\nContent-Length: ${EVIL.length}\r\n\r\n`],
  ['GET', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['GET', `HTTP/1.1 304 Not Modified\r\nContent-Length: ${EVIL.length}\r\n\r\n`],
  ['GET', 'HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n'],
] as const;

describe('a response reaches no other request', () => {
  const stage = withGateway({ backendConnections: 1 });

  /** The backend gives the victim `good`, and does with every other request what `act` says. */
  function othersGet(act: (connection: RawPeer) => void): void {
    stage.backend.onConnection((connection) => {
      let seen = 0;
      connection.socket.on('data', () => {
        const heads = connection.text.split('\r\n\r\n').slice(0, -1);
        for (; seen < heads.length; seen += 1) {
          if (heads[seen]?.includes('/victim')) connection.send(GOOD);
          else act(connection);
        }
      });
    });
  }

  it.each(BODILESS)('whose body comes after a %s that has none, split anywhere: %j', async (method, head) => {
    const { gateway, backend } = stage;
    const bytes = head + EVIL;
    const victim = await gateway.connect();
    for (let split = 1; split < bytes.length; split += 1) {
      othersGet((connection) => {
        connection.send(bytes.slice(0, split));
        // In a separate segment, in a later turn of both.
        setImmediate(() => setImmediate(() => connection.send(bytes.slice(split))));
      });
      const attacker = await gateway.send(gateway.head(`${method} /`));
      victim.send(gateway.headOf(gateway.otherSecret, 'GET /victim'));
      await attacker.until((text) => text.endsWith('\r\n\r\n'));
      const served = split;
      await victim.until((text) => text.split('\r\n\r\n').length - 1 === served && text.endsWith('good'));
      expect(victim.text).not.toContain('evil');
      attacker.destroy();
    }
    expect(backend.received).toContain('/victim');
  });

  it.each([
    ['with a length', GOOD],
    ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\n\r\n'],
  ])('when more comes behind one %s, split anywhere', async (_how, complete) => {
    const { gateway } = stage;
    const bytes = complete + EVIL;
    for (let split = complete.length - 1; split < bytes.length; split += 1) {
      othersGet((connection) => {
        connection.send(bytes.slice(0, split));
        setImmediate(() => connection.send(bytes.slice(split)));
      });
      const first = await gateway.send(gateway.head('GET /'));
      const second = await gateway.send(gateway.headOf(gateway.otherSecret, 'GET /victim'));
      await first.until((text) => /good(\r\n0\r\n\r\n)?$/.test(text));
      // It may come so late that the other request is on its way: then it is unknown whose it is. Never is it both.
      await second.until((text) => text.endsWith('good') || text.endsWith('evil') || text.endsWith('}'));
      if (split <= complete.length) expect(second.text).toMatch(/good$/);
      for (const client of [first, second]) client.destroy();
    }
  });

  it('that lay in the socket of an idle connection before the request came', async () => {
    const { gateway, backend } = stage;
    backend.respond(GOOD);
    const client = await gateway.connect();
    for (let i = 1; i <= 20; i += 1) {
      client.send(gateway.head('GET /'));
      await client.until((text) => text.split('good').length === i + 1);
      await gateway.settled();
      backend.connections.at(-1)?.send(EVIL);
      const victim = await gateway.send(gateway.headOf(gateway.otherSecret, 'GET /victim'));
      // The process stalls: both lie in its sockets when it goes on.
      const stalledUntil = performance.now() + 5;
      while (performance.now() < stalledUntil);
      expect(await victim.until((text) => /good|evil/.test(text))).toMatch(/good$/);
      victim.destroy();
    }
  });

  it('after an exchange that was aborted in its body', async () => {
    const { gateway, backend } = stage;
    othersGet((connection) => connection.send('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun'));
    const leaver = await gateway.send(gateway.head('GET /'));
    await leaver.until((text) => text.endsWith('begun'));
    leaver.destroy();
    const victim = await gateway.send(gateway.headOf(gateway.otherSecret, 'GET /victim'));
    backend.connections[0]?.send(EVIL);
    expect(await victim.until((text) => /good|evil/.test(text))).toMatch(/good$/);
    expect(backend.connections).toHaveLength(2);
  });

  it('after a response to a request whose body was not sent whole', async () => {
    const { gateway, backend } = stage;
    othersGet((connection) => connection.send(GOOD));
    const slow = await gateway.send(`${gateway.head('POST /', 'Content-Length: 5')}he`);
    await slow.until((text) => text.endsWith('good'));
    slow.send('llo');
    const victim = await gateway.send(gateway.headOf(gateway.otherSecret, 'GET /victim'));
    await victim.until((text) => text.endsWith('good'));
    expect(backend.connections).toHaveLength(2);
    expect(backend.connections[0]?.text).not.toContain('/victim');
  });

  it('when the next request waits for the connection', async () => {
    const { gateway, backend } = stage;
    othersGet(() => {});
    const first = await gateway.send(gateway.head('HEAD /'));
    const connection = await backend.connection();
    await connection.head();
    const waiting = await gateway.send(gateway.headOf(gateway.otherSecret, 'GET /victim'));
    await until(() => gateway.proxy.backendLoad.waiting === 1);
    connection.send(`HTTP/1.1 200 OK\r\nContent-Length: ${EVIL.length}\r\n\r\n`);
    connection.send(EVIL);
    await first.until((text) => text.endsWith('\r\n\r\n'));
    expect(await waiting.until((text) => /good|evil/.test(text))).toMatch(/good$/);
  });
});
