import { connect, type Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { SeededRandom } from '../chaos/seeded-random.ts';
import { type Stage, withGateway } from './support/with-gateway.ts';

const TUNNELS = 12;
const REQUESTS = 30;
const TUNNEL_BYTES = 512 * 1024;
const ASKS = ['Connection: Upgrade', 'Upgrade: websocket'] as const;
const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

/** Bytes that are in no other tunnel or body, nor at another place of this one. */
function bytesOf(name: string, length: number): Buffer {
  const text = Array.from({ length: Math.ceil(length / 16) }, (_, i) => `${name}:${i};`.padEnd(16, '.')).join(
    '',
  );
  return Buffer.from(text, 'latin1').subarray(0, length);
}

async function send(socket: Socket, bytes: Buffer, random: SeededRandom): Promise<void> {
  for (let at = 0; at < bytes.length && !socket.destroyed; ) {
    const size = random.pick([1, 125, 4096, 40_000, 66_000, 200_000]);
    const part = bytes.subarray(at, at + size);
    at += part.length;
    if (!socket.write(part)) await new Promise((resolve) => socket.once('drain', resolve));
  }
}

/** Resolves with what arrives, once it is so many bytes. Slow readers pause now and then. */
function receive(socket: Socket, length: number, isSlow: boolean): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let received = 0;
  return new Promise((resolve) => {
    const look = (chunk: Buffer) => {
      chunks.push(chunk);
      received += chunk.length;
      if (received >= length) resolve(Buffer.concat(chunks));
      if (!isSlow) return;
      socket.pause();
      setTimeout(() => socket.resume(), 1);
    };
    socket.on('data', look);
    socket.on('close', () => resolve(Buffer.concat(chunks)));
  });
}

/** Sends bytes both ways through a tunnel at once; resolves with what each end received. */
async function tunnel({ gateway }: Stage, number: number, random: SeededRandom) {
  const socket = connect(gateway.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(gateway.head(`GET /tunnel/${number}`, ...ASKS));
  const head = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
  const end = head.indexOf('\r\n\r\n') + 4;
  if (end < head.length) socket.unshift(head.subarray(end));
  const received = receive(socket, TUNNEL_BYTES, random.between(0, 1) === 0);
  await send(socket, bytesOf(`up${number}`, TUNNEL_BYTES), random);
  return { socket, received: await received };
}

describe.each([
  ['without TLS', {}],
  ['with TLS', { isTls: true }],
] as const)('upgraded connections beside requests, to a backend %s,', (_how, backend) => {
  const stage = withGateway({ backendConnections: 8 }, backend);

  it('carry their own bytes both ways, and none of another one', async () => {
    const random = new SeededRandom(1);
    const arrived = new Map<number, Promise<Buffer>>();
    stage.backend.onConnection(({ socket }) => {
      const serve = (chunk: Buffer) => {
        const head = chunk.toString('latin1');
        const number = Number(/\/(\d+) HTTP/.exec(head)?.[1]);
        if (!head.startsWith('GET /tunnel/')) {
          const body = bytesOf(`body${number}`, 70_000);
          socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`);
          socket.write(body);
          return;
        }
        socket.off('data', serve);
        arrived.set(number, receive(socket, TUNNEL_BYTES, random.between(0, 1) === 0));
        socket.write(SWITCHING);
        void send(socket, bytesOf(`down${number}`, TUNNEL_BYTES), random);
      };
      socket.on('data', serve);
    });

    const tunnels = Array.from({ length: TUNNELS }, (_, number) => tunnel(stage, number, random));
    for (let number = 0; number < REQUESTS; number += 1) {
      const client = await stage.gateway.send(stage.gateway.head(`GET /${number}`, 'Connection: close'));
      await client.ended();
      const body = client.bytes.subarray(client.bytes.indexOf('\r\n\r\n') + 4);
      expect(body.equals(bytesOf(`body${number}`, 70_000))).toBe(true);
    }
    for (const [number, { socket, received }] of (await Promise.all(tunnels)).entries()) {
      expect(received.equals(bytesOf(`down${number}`, TUNNEL_BYTES))).toBe(true);
      expect((await arrived.get(number))?.equals(bytesOf(`up${number}`, TUNNEL_BYTES))).toBe(true);
      socket.destroy();
    }
  });
});
