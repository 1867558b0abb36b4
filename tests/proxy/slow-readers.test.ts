import { randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { type ReadBuffer, ReadBuffers } from '../../src/backend/read-buffers.ts';
import { until, untilAtRest } from '../support/until.ts';
import { bodyOf, unchunk } from './support/body-bytes.ts';
import type { RawPeer } from './support/raw-peer.ts';
import { type Stage, withGateway } from './support/with-gateway.ts';

const CLIENTS = 6;
/** More than the system keeps for a connection. */
const BODY_BYTES = 12 * 1024 * 1024;
/** Together more than that. */
const PIPELINED = 400;
const SMALL_BODY_BYTES = 30_000;
const NOTHING = Buffer.alloc(0);

/** Clients that have asked for `/0`, `/1` and so on, and read nothing yet. */
async function stalledClients({ gateway }: Stage): Promise<RawPeer[]> {
  const clients: RawPeer[] = [];
  for (let number = 0; number < CLIENTS; number += 1) {
    const client = await gateway.connect();
    client.socket.pause();
    client.send(gateway.head(`GET /${number}`));
    clients.push(client);
  }
  return clients;
}

/** Responds to `/n` with `responseTo(n)`. */
function respondWith({ backend }: Stage, responseTo: (number: number) => Buffer): void {
  backend.onConnection(async (connection) => {
    connection.send(responseTo(Number(/^GET \/(\d+)/.exec(await connection.head())?.[1])));
  });
}

describe('clients that read slowly', () => {
  const stage = withGateway();

  it.each([
    ['with a length', withLength, (bytes: Buffer) => bodyOf(bytes).length === BODY_BYTES, bodyOf],
    [
      'in chunks of all sizes',
      inChunks,
      (bytes: Buffer) => bytes.subarray(-7).toString('latin1') === '\r\n0\r\n\r\n',
      (bytes: Buffer) => unchunk(bodyOf(bytes)),
    ],
  ])('get their own bodies whole and unchanged, %s', async (_name, framed, isWhole, bodyIn) => {
    const bodies = Array.from({ length: CLIENTS }, () => randomBytes(BODY_BYTES));
    respondWith(stage, (number) => framed(bodies[number] ?? NOTHING));
    const clients = await stalledClients(stage);
    await until(() => stage.gateway.proxy.backendLoad.busy === CLIENTS);

    // Some read while others stall, so that buffers are released and read into in between.
    for (const parity of [0, 1]) {
      const reading = clients.filter((_, number) => number % 2 === parity);
      for (const client of reading) client.socket.resume();
      await until(() => reading.every(({ bytes }) => isWhole(bytes)));
    }
    const areTheirOwn = clients.map(({ bytes }, number) => bodyIn(bytes).equals(bodies[number] ?? NOTHING));
    expect(areTheirOwn).toEqual(clients.map(() => true));
  });

  it('get their small bodies while the system takes none and others use the connection', async () => {
    const responses = Array.from({ length: PIPELINED + 1 }, () => withLength(randomBytes(SMALL_BODY_BYTES)));
    let served = 0;
    stage.backend.onConnection((connection) => {
      connection.socket.on('data', (chunk: Buffer) => {
        served += 1;
        connection.send(responses[Number(/^GET \/(\d+)/.exec(chunk.toString('latin1'))?.[1])] ?? NOTHING);
      });
    });
    const slow = await stage.gateway.connect();
    slow.socket.pause();
    for (let number = 0; number < PIPELINED; number += 1) slow.send(stage.gateway.head(`GET /${number}`));
    // What it has not read fills what the system keeps for it.
    expect(await untilAtRest(() => served, 1)).toBeLessThan(PIPELINED);

    const other = await stage.gateway.connect();
    for (let count = 1; count <= 3; count += 1) {
      other.send(stage.gateway.head(`GET /${PIPELINED}`));
      await until(() => bodiesIn(other.bytes).length === count);
    }
    slow.socket.resume();
    await until(() => bodiesIn(slow.bytes).length === PIPELINED);
    const areTheirOwn = bodiesIn(slow.bytes).map((body, number) =>
      body.equals(bodyOf(responses[number] ?? NOTHING)),
    );
    expect(areTheirOwn).toEqual(areTheirOwn.map(() => true));
  });

  it('hold a bounded number of buffers, however much they have asked for', async () => {
    const buffers = new Set<ReadBuffer>();
    let taken = 0;
    const { take } = ReadBuffers.prototype;
    ReadBuffers.prototype.take = function (this: ReadBuffers): ReadBuffer {
      const buffer = take.call(this);
      buffers.add(buffer);
      taken += 1;
      return buffer;
    };
    try {
      const response = withLength(Buffer.alloc(BODY_BYTES, 'x'));
      respondWith(stage, () => response);
      const clients = await stalledClients(stage);
      await until(() => stage.gateway.proxy.backendLoad.busy === CLIENTS);
      expect(await untilAtRest(() => taken, 0)).toBeGreaterThan(CLIENTS);
      // A buffer that still waits for its client is not read into again.
      expect(buffers.size).toBeGreaterThanOrEqual(2 * CLIENTS);
      // For each what is read into, and what waits for the client: a buffer, and one more with what had arrived by then.
      expect(buffers.size).toBeLessThanOrEqual(3 * CLIENTS);

      // Those that leave instead of reading give theirs back, or to the garbage collection.
      for (const client of clients) client.destroy();
      await stage.gateway.settled();
      stage.backend.respond('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      const next = await stage.gateway.send(stage.gateway.head('GET /'));
      await next.until((text) => text.endsWith('\r\n\r\nok'));
    } finally {
      ReadBuffers.prototype.take = take;
    }
  });
});

function withLength(body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`), body]);
}

/** The bodies of small responses, one after the other. */
function bodiesIn(bytes: Buffer): Buffer[] {
  const bodies: Buffer[] = [];
  for (let at = 0; ; ) {
    const end = bytes.indexOf('\r\n\r\n', at);
    if (end === -1 || bytes.length < end + 4 + SMALL_BODY_BYTES) return bodies;
    at = end + 4 + SMALL_BODY_BYTES;
    bodies.push(bytes.subarray(end + 4, at));
  }
}

/** Chunks of 1 byte to 300 kB. */
function inChunks(body: Buffer): Buffer {
  const parts: Buffer[] = [Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')];
  for (let at = 0, size = 1; at < body.length; at += size, size = size > 100_000 ? 1 : size * 3 + 1) {
    const chunk = body.subarray(at, at + size);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}
