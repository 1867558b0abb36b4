import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ListeningSockets } from '../../src/server/listening-sockets.ts';
import { claimPort } from '../../src/server/port-claim.ts';

const HOST = '127.0.0.1';
/** More than a single socket takes, and a small part of what all of them do. */
const CONNECTIONS = 1000;
/** A client that lives in a thread, so that it connects while this one does nothing else. */
const CLIENT = `
  const { connect } = require('node:net');
  const { connected, port, connections } = require('node:worker_threads').workerData;
  for (let i = 0; i < connections; i += 1) {
    connect(port, '${HOST}').on('error', () => {}).once('connect', () => {
      Atomics.add(connected, 0, 1);
      Atomics.notify(connected, 0);
    });
  }`;

let server: Server;
let sockets: ListeningSockets;
let accepted: number;

beforeEach(() => {
  accepted = 0;
  server = createServer((_req, res) => res.end('ok'));
  server.on('connection', () => {
    accepted += 1;
  });
  sockets = new ListeningSockets(server);
});
afterEach(async () => {
  server.closeAllConnections();
  await sockets.close();
});

describe('a port', () => {
  it('takes a thousand connections while busy, and then accepts many at a time', async () => {
    const { port } = await sockets.listen({ port: 0, host: HOST, sharesPort: false });
    const connected = new Int32Array(new SharedArrayBuffer(4));
    const workerData = { connected, port, connections: CONNECTIONS };
    const client = new Worker(CLIENT, { eval: true, workerData });
    await once(client, 'online');

    // Nothing is accepted meanwhile: what is too much for the queues never gets here.
    for (let count = 0; count < CONNECTIONS; count = connected[0] ?? 0) {
      if (Atomics.wait(connected, 0, count, 60_000) === 'timed-out') break;
    }
    expect([connected[0], accepted]).toEqual([CONNECTIONS, 0]);

    let turns = 0;
    while (accepted < CONNECTIONS && turns < CONNECTIONS) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
    await client.terminate();
    expect(accepted).toBe(CONNECTIONS);
    expect(turns).toBeLessThan(CONNECTIONS / 8);
  });

  it('serves each connection alike, whichever socket accepted it', async () => {
    const { port } = await sockets.listen({ port: 0, host: HOST, sharesPort: false });
    const bodies = await Promise.all(
      Array.from({ length: 300 }, async () => (await fetch(`http://${HOST}:${port}/`)).text()),
    );
    expect(new Set(bodies)).toEqual(new Set(['ok']));
  });

  it('is not taken from another gateway of the same user', async () => {
    const { port } = await sockets.listen({ port: 0, host: HOST, sharesPort: false });
    const second = new ListeningSockets(createServer());
    await expect(second.listen({ port, host: HOST, sharesPort: false })).rejects.toMatchObject({
      code: 'EADDRINUSE',
    });
  });

  it('is not had by two gateways that begin to listen at the same instant', async () => {
    const { port } = await sockets.listen({ port: 0, host: HOST, sharesPort: false });
    await sockets.close();
    const release = await claimPort(port, HOST);
    const place = { port, host: HOST, sharesPort: false };
    // The first has looked, and does not listen yet.
    await expect(sockets.listen(place)).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await release();
    expect(await sockets.listen(place)).toMatchObject({ port });
    await expect(claimPort(port, HOST)).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await sockets.close();
    await (await claimPort(port, HOST))();
  });

  it('is shared where that is wanted', async () => {
    const { port } = await sockets.listen({ port: 0, host: HOST, sharesPort: true });
    const other = createServer((_req, res) => res.setHeader('connection', 'close').end('other'));
    const second = new ListeningSockets(other);
    await second.listen({ port, host: HOST, sharesPort: true });
    const bodies = new Set<string>();
    for (let i = 0; i < 1000 && bodies.size < 2; i += 1) {
      const response = await fetch(`http://${HOST}:${port}/`, { headers: { connection: 'close' } });
      bodies.add(await response.text());
    }
    await second.close();
    expect(bodies).toEqual(new Set(['ok', 'other']));
  });

  it('that is closed takes no connection on any of its sockets', async () => {
    const { port } = await sockets.listen({ port: 0, host: HOST, sharesPort: false });
    await sockets.close();
    const codes = await Promise.all(
      Array.from({ length: 300 }, async () => {
        const [error] = (await once(connect(port, HOST), 'error')) as [NodeJS.ErrnoException];
        return error.code;
      }),
    );
    expect(new Set(codes)).toEqual(new Set(['ECONNREFUSED']));
  });
});
