import { connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { SeededRandom } from '../chaos/seeded-random.ts';
import { type Stage, withGateway } from './support/with-gateway.ts';

const CLIENTS = 32;
const REQUESTS_EACH = 4;
/** Around the sizes from which a chunk is copied, written from the buffer that it was read into, or read in several parts. */
const SIZES = [0, 1, 900, 8192, 8193, 20_000, 32_768, 40_000, 65_536, 69_632, 150_000, 500_000] as const;
/** More than the system keeps for a connection. */
const STALLING_BYTES = 7 * 1024 * 1024;
/** Requests wait for the connections of clients that read slowly, and these for all others, for as long as a busy machine takes. */
const LONGER_THAN_THE_TEST_MS = 600_000;
const FRAMINGS = ['length', 'length', 'chunked', 'chunked', 'to the end', 'cut', 'HEAD', '204'] as const;
const READERS = ['fast', 'slow', 'stalled', 'leaving'] as const;

interface PlannedResponse {
  readonly number: number;
  readonly framing: (typeof FRAMINGS)[number];
  readonly body: Buffer;
  readonly hasCookie: boolean;
}

interface Client {
  readonly reader: (typeof READERS)[number];
  readonly responses: readonly PlannedResponse[];
}

describe.each([
  ['', 1, {}],
  [' from a backend with TLS', 3, { isTls: true }],
] as const)('many clients at once, which read fast, slowly, late or leave,', (from, seed, backend) => {
  const stage = withGateway(
    {
      backendTimeoutMs: LONGER_THAN_THE_TEST_MS,
      rateWindowMs: LONGER_THAN_THE_TEST_MS,
      timeouts: { idleMs: LONGER_THAN_THE_TEST_MS },
    },
    backend,
  );

  it(`get nothing of the response to another request${from} (seed ${seed})`, async () => {
    const random = new SeededRandom(seed);
    const clients = Array.from({ length: CLIENTS }, (_, index) => clientOf(random, index));
    const responses = clients.flatMap((client) => client.responses);
    stage.backend.onConnection(({ socket }) => serve(socket, responses, random));

    let late = () => {};
    const othersHaveRead = new Promise<void>((resolve) => {
      late = resolve;
    });
    const reading = clients.map((client) => receive(stage, client, { random, othersHaveRead }));
    await Promise.all(reading.filter((_, index) => clients[index]?.reader !== 'stalled'));
    late();
    const received = await Promise.all(reading);

    for (const [index, bytes] of received.entries()) {
      const { reader, responses } = clients[index] as Client;
      const whole = wholeResponses(bytes, responses);
      const firstCut = responses.findIndex(({ framing }) => framing === 'cut');
      if (reader !== 'leaving') expect(whole).toBe(firstCut === -1 ? responses.length : firstCut);
    }
  });
});

function clientOf(random: SeededRandom, index: number): Client {
  const reader = random.pick(READERS);
  const responses = Array.from({ length: REQUESTS_EACH }, (_, position) => {
    const number = index * REQUESTS_EACH + position;
    const isStalling = (reader === 'slow' || reader === 'stalled') && position === 0;
    const framing = isStalling ? 'length' : random.pick(FRAMINGS);
    // No part of it is in another body, nor the same at another place within a buffer.
    const pattern = `<${number}>${Array.from({ length: 991 }, () => random.between(0, 9)).join('')}`;
    const size = isStalling ? STALLING_BYTES : random.pick(SIZES);
    const body = Buffer.alloc(framing === 'HEAD' || framing === '204' ? 0 : size, pattern);
    return { number, framing, body, hasCookie: random.between(0, 2) === 0 };
  });
  return { reader, responses };
}

/** Responds to each request in parts of all sizes, in one turn or in several. */
function serve(socket: Socket, responses: readonly PlannedResponse[], random: SeededRandom): void {
  socket.on('data', async (chunk: Buffer) => {
    const planned = responses[Number(/ \/(\d+) HTTP/.exec(chunk.toString('latin1'))?.[1])];
    if (planned === undefined) throw new Error('A request came in parts, or several at once.');
    const response = responseOf(planned, random);
    // Within the body: it is announced as longer than it is.
    const cutAt = random.between(response.length - planned.body.length, response.length);
    const bytes = planned.framing === 'cut' ? response.subarray(0, cutAt) : response;
    for (let at = 0; at < bytes.length && !socket.destroyed; ) {
      const size = random.pick([1, 50, 3000, 20_000, 66_000, 300_000, 3_000_000]);
      socket.write(bytes.subarray(at, at + size));
      at += size;
      if (random.between(0, 1) === 0) await nextTurn();
    }
    if (planned.framing === 'cut' || planned.framing === 'to the end') socket.end();
  });
}

function responseOf({ number, framing, body, hasCookie }: PlannedResponse, random: SeededRandom): Buffer {
  const version = framing === 'to the end' ? '1.0' : '1.1';
  const status = framing === '204' ? '204 No Content' : '200 OK';
  const lines = [`HTTP/${version} ${status}`, 'Content-Type: text/plain', `X-Number: ${number}`];
  if (hasCookie) lines.push(`Set-Cookie: session=${number}`);
  if (framing === 'chunked') lines.push('Transfer-Encoding: chunked');
  if (framing === 'length' || framing === 'cut' || framing === 'HEAD')
    lines.push(`Content-Length: ${framing === 'cut' ? body.length + 1 : body.length}`);
  const early = random.between(0, 3) === 0 ? `HTTP/1.1 103 Early Hints\r\nLink: </${number}>\r\n\r\n` : '';
  const head = Buffer.from(`${early}${lines.join('\r\n')}\r\n\r\n`);
  if (framing !== 'chunked') return Buffer.concat([head, body]);
  const parts: Buffer[] = [head];
  for (let at = 0; at < body.length; ) {
    const part = body.subarray(at, at + random.pick([1, 700, 9000, 33_000, 70_000]));
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'));
    at += part.length;
  }
  return Buffer.concat([...parts, Buffer.from(`0\r\nX-Trailer: ${number}\r\n\r\n`)]);
}

/** Sends all requests of a client at once; resolves with all that it got on its connection. */
function receive(
  { gateway }: Stage,
  { reader, responses }: Client,
  { random, othersHaveRead }: { readonly random: SeededRandom; readonly othersHaveRead: Promise<void> },
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const socket = connect(gateway.port, '127.0.0.1');
  const leavesAfter = random.between(1, 400_000);
  let length = 0;
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    if (reader === 'leaving' && length >= leavesAfter) socket.destroy();
    if (reader !== 'slow' && reader !== 'stalled') return;
    // So its last bytes wait in the gateway, while the backend's connection already carries another response.
    socket.pause();
    setTimeout(() => socket.resume(), random.between(0, 4));
  });
  if (reader === 'stalled') {
    socket.pause();
    void othersHaveRead.then(() => socket.resume());
  }
  const heads = responses.map(({ number, framing }, position) => {
    const secret = number % 8 < REQUESTS_EACH ? gateway.secret : gateway.otherSecret;
    const line = `${framing === 'HEAD' ? 'HEAD' : 'GET'} /${number}`;
    return gateway.headOf(secret, line, ...(position === responses.length - 1 ? ['Connection: close'] : []));
  });
  socket.write(heads.join(''));
  return new Promise((resolve) => {
    // A response that is cut may end the connection by a reset.
    socket.on('error', () => {});
    socket.on('close', () => resolve(Buffer.concat(chunks)));
  });
}

/** How many whole responses there are. Throws when a byte is not of the response that it should be of, whole or not. */
function wholeResponses(bytes: Buffer, responses: readonly PlannedResponse[]): number {
  let at = 0;
  let whole = 0;
  for (const { number, framing, body, hasCookie } of responses) {
    const hints = `HTTP/1.1 103 Early Hints\r\nLink: </${number}>\r\n\r\n`;
    if (bytes.subarray(at, at + hints.length).equals(Buffer.from(hints))) at += hints.length;
    const headEnd = bytes.indexOf('\r\n\r\n', at);
    if (headEnd === -1) return whole;
    const head = bytes.toString('latin1', at, headEnd);
    at = headEnd + 4;
    if (!head.includes('X-Number')) throw new Error(`Not the response to ${number}:\n${head}`);
    expect(head.match(/X-Number: .*|Set-Cookie: .*/g)).toEqual([
      `X-Number: ${number}`,
      ...(hasCookie ? [`Set-Cookie: session=${number}`] : []),
    ]);
    const { parts, end } = /transfer-encoding: chunked/i.test(head)
      ? chunksIn(bytes, at)
      : { parts: [bytes.subarray(at, at + body.length)], end: at + body.length };
    const got = Buffer.concat(parts);
    if (!got.equals(body.subarray(0, got.length))) throw new Error(`Bytes of another response in ${number}.`);
    if (end === undefined || end > bytes.length || framing === 'cut') return whole;
    expect(got).toHaveLength(body.length);
    at = end;
    whole += 1;
  }
  expect(bytes.subarray(at)).toHaveLength(0);
  return whole;
}

/** What has arrived of a body in chunks, and where it ends; undefined when not all of it has arrived. */
function chunksIn(
  bytes: Buffer,
  start: number,
): { readonly parts: Buffer[]; readonly end: number | undefined } {
  const parts: Buffer[] = [];
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd === -1) return { parts, end: undefined };
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    if (size === 0) return { parts, end: lineEnd + 4 };
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}
