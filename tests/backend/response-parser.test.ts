import { request } from 'node:http';
import { createServer, type Server } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type ResponseHead, readResponseHead } from '../../src/backend/response-head.ts';
import { ResponseParser } from '../../src/backend/response-parser.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';

/** What a response is taken for, however it arrived. */
interface Reading {
  readonly interim: number[];
  readonly head: ResponseHead | undefined;
  readonly body: string;
  readonly rest: string;
  readonly isComplete: boolean;
  readonly isFaulty: boolean;
}

/** All chunks arrive in one buffer, as on a connection: what the parser keeps of one must not change with the next. */
function read(chunks: readonly string[], method = 'GET'): Reading {
  const buffer = Buffer.alloc(Math.max(0, ...chunks.map(({ length }) => length)));
  const interim: number[] = [];
  let head: ResponseHead | undefined;
  let body = '';
  let rest = '';
  let isComplete = false;
  const parser = new ResponseParser({
    onInterim: ({ status }) => interim.push(status),
    onHead: (complete) => {
      head = complete;
    },
    onBody: (chunk) => {
      body += chunk.toString('latin1');
    },
    onEnd: (more) => {
      isComplete = true;
      rest += more.toString('latin1');
    },
  });
  parser.expect(method);
  for (const chunk of chunks) {
    const length = buffer.fill('!').write(chunk, 'latin1');
    if (parser.push(buffer.subarray(0, length)) !== undefined) {
      return { interim, head, body, rest, isComplete, isFaulty: true };
    }
    if (isComplete) break;
  }
  return { interim, head, body, rest, isComplete: isComplete || parser.end(), isFaulty: false };
}

const RESPONSES: readonly string[] = [
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
  'HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n',
  'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1F\r\n0123456789012345678901234567890\r\n0\r\nA: b\r\nC: d\r\n\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n00004\r\n\r\n\r\n\r\n0\r\n\r\n',
  'HTTP/1.1 200 OK\r\nA:  \t b \r\nB:\r\n\r\nuntil the end',
];

const RICH_HEAD =
  'HTTP/1.1 200 OK\r\nServer: x\r\nDate: Sun, 22 Nov 2026 17:00:00 GMT\r\nSet-Cookie: a=b\r\nSet-Cookie: a=b\r\nVary:\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nContent-Length: 12\r\n';

describe('a response of the backend', () => {
  it('keeps the order, case and repetition of headers, without blanks around values', () => {
    const { head } = read([
      'HTTP/1.1 299 Who knows\r\nB:  two \t\r\na:\r\nB: \xe9\r\nC:\ttab\r\nD: four \t\r\nContent-Length:  0\r\n\r\n',
    ]);
    expect(head).toMatchObject({
      status: 299,
      reason: 'Who knows',
      lines: ['B: two\r\n', 'a: \r\n', 'B: \xe9\r\n', 'C: tab\r\n', 'D: four\r\n', 'Content-Length: 0\r\n'],
      length: 0,
      isChunked: false,
    });
  });

  it.each([
    ['1.1', '', true],
    ['1.1', 'Connection: keep-alive, Close\r\n', false],
    ['1.0', '', false],
    ['1.0', 'Connection: Keep-Alive\r\n', true],
    ['1.0', 'Connection: keep-alive\r\nConnection: close\r\n', false],
  ])('in HTTP/%s with %j keeps its connection: %s', (version, field, keepsAlive) => {
    const { head } = read([`HTTP/${version} 200 OK\r\n${field}Content-Length: 0\r\n\r\n`]);
    expect(head).toMatchObject({ keepsAlive });
  });

  it('is the same in whatever chunks it arrives', () => {
    fc.assert(
      fc.property(fc.constantFrom(...RESPONSES), fc.array(fc.nat(200), { maxLength: 12 }), (bytes, cuts) => {
        const places = [0, ...cuts.map((cut) => cut % bytes.length).toSorted((a, b) => a - b), bytes.length];
        const chunks = places.slice(1).map((place, i) => bytes.slice(places[i], place));
        expect(read(chunks)).toEqual(read([bytes]));
        expect(read(Array.from(bytes))).toEqual(read([bytes]));
        expect(read([bytes])).toMatchObject({ isComplete: true, isFaulty: false });
      }),
    );
  });

  it.each([
    ['with a length', 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello'],
    ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'],
    ['in a chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhello'],
    ['in the trailers', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n'],
    ['in the head', 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n'],
    ['before the head', ''],
  ])('that ends early is not complete: %s', (_where, bytes) => {
    expect(read([bytes])).toMatchObject({ isComplete: false, isFaulty: false });
  });

  it('has no body after HEAD, and with 204 and 304; what comes then is the rest', () => {
    const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
    expect(read([`${chunked}0\r\n\r\n`], 'HEAD')).toMatchObject({ body: '', rest: '0\r\n\r\n' });
    for (const status of ['204 No Content', '304 Not Modified']) {
      const reading = read([`HTTP/1.1 ${status}\r\nContent-Length: 3\r\n\r\nabc`]);
      expect(reading).toMatchObject({ isComplete: true, body: '', rest: 'abc' });
    }
  });

  it.each([
    ['a size that is no number', 'x\r\n'],
    ['a negative size', '-1\r\n'],
    ['a size with 0x', '0x5\r\nhello\r\n0\r\n\r\n'],
    ['a size with a blank in front', ' 5\r\nhello\r\n0\r\n\r\n'],
    ['a size of more than 52 bits', '10000000000000\r\n'],
    ['a size line that ends with LF', '5\nhello\r\n0\r\n\r\n'],
    ['a CR in an extension', '5;a\rb\r\nhello\r\n0\r\n\r\n'],
    ['an extension over 16 KiB', `5;${'a'.repeat(16_400)}`],
    ['a chunk that is longer than its size', '5\r\nhello!\r\n0\r\n\r\n'],
    ['a chunk without a line end', '5\r\nhello0\r\n\r\n'],
    ['a chunk that ends with LF', '5\r\nhello\n0\r\n\r\n'],
    ['a trailer without a name', '0\r\n: b\r\n\r\n'],
    ['a trailer without a colon', '0\r\nb\r\n\r\n'],
    ['a folded trailer', '0\r\nA: b\r\n c\r\n\r\n'],
    ['trailers over 16 KiB', `0\r\n${'A: bbbbbbbbbbbbbbbbbbbb\r\n'.repeat(700)}\r\n`],
  ])('in chunks is faulty with %s', (_what, chunks) => {
    const bytes = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`;
    for (const chunks of [[bytes], Array.from(bytes)]) {
      expect(read(chunks)).toMatchObject({ isComplete: false, isFaulty: true });
    }
  });

  it.each([
    [16_384, false],
    [16_385, true],
  ])('with a head of %i bytes is faulty: %s, whatever comes before and after it', (bytes, isFaulty) => {
    const head = 'HTTP/1.1 204 No Content\r\nA: '.padEnd(bytes, 'a');
    const before = 'HTTP/1.1 100 Continue\r\n\r\n';
    expect(read([before + head])).toMatchObject({ isComplete: false, isFaulty });
    const whole = read([`${before}${head}\r\n\r\n${'x'.repeat(20_000)}`]);
    expect(whole).toMatchObject({ isComplete: !isFaulty, isFaulty });
  });

  it.each([
    [16_384, false],
    [16_385, true],
  ])('with a line of %i bytes between chunks is faulty: %s', (bytes, isFaulty) => {
    const before = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4e20\r\n${'x'.repeat(20_000)}\r\n`;
    const line = `${'0;'.padEnd(bytes - 2, 'a')}\r\n`;
    expect(read([`${before}${line}\r\n`])).toMatchObject({ isComplete: !isFaulty, isFaulty });
  });

  it('is read the same whatever head came before it on the connection', () => {
    const heads = RESPONSES.map((bytes) => bytes.slice(0, bytes.indexOf('\r\n\r\n') + 2));
    const changes = fc.array(fc.tuple(fc.nat(), fc.constantFrom(...MUTATIONS)), { maxLength: 3 });
    const changed = fc
      .tuple(fc.constantFrom(...heads, RICH_HEAD), changes)
      .map(([head, all]) =>
        all.reduce((bytes, [at, mutate]) => mutate(bytes, at % Math.max(bytes.length, 1)), head),
      );
    fc.assert(
      fc.property(changed, changed, (head, earlier) => {
        const alone = readResponseHead(head);
        for (const one of [head, earlier, RICH_HEAD])
          expect(readResponseHead(head, readResponseHead(one))).toEqual(alone);
      }),
      { numRuns: 2000 },
    );
  });

  it('that we accept, the parser of Node accepts, and takes for the same', async () => {
    const cases = fc.sample(
      fc.tuple(fc.constantFrom(...RESPONSES), fc.nat(), fc.constantFrom(...MUTATIONS)),
      {
        numRuns: 400,
        seed: Number(process.env.MUTANT_SEED ?? 11),
      },
    );
    const backend = await MutantBackend.start();
    let accepted = 0;
    try {
      for (const [bytes, at, mutate] of cases) {
        const mutant = mutate(bytes, at % bytes.length);
        const ours = read([mutant]);
        if (!ours.isComplete || ours.isFaulty || ours.rest !== '') continue;
        accepted += 1;
        expect({ mutant, ...(await backend.readBy(mutant)) }).toEqual({
          mutant,
          status: ours.head?.status,
          body: ours.body,
        });
      }
    } finally {
      await backend.stop();
    }
    expect(accepted).toBeGreaterThan(50);
  });
});

type Mutation = (bytes: string, at: number) => string;

const insert =
  (what: string): Mutation =>
  (bytes, at) =>
    bytes.slice(0, at) + what + bytes.slice(at);

const MUTATIONS: readonly Mutation[] = [
  ...['\r', '\n', '\r\n', ' ', '\t', '\0', ':', '0', '9', 'a', ';', ',', 'x', '\x7f', '\xff'].map(insert),
  (bytes, at) => bytes.slice(0, at) + bytes.slice(at + 1),
  (bytes, at) =>
    bytes.slice(0, at) + bytes.slice(at + 1, at + 2) + bytes.slice(at, at + 1) + bytes.slice(at + 2),
  (bytes, at) => bytes.replace('\r\n', `\r\n${bytes.slice(at, at + 20)}\r\n`),
  (bytes) => bytes.replace('\r\n', '\r\nContent-Length: 5\r\n'),
  (bytes) => bytes.replace('\r\n', '\r\nTransfer-Encoding: chunked\r\n'),
  (bytes) => bytes.replace('1.1', '1.0'),
];

/** Sends each response, and closes the connection behind it. */
class MutantBackend {
  readonly #server: Server;
  readonly #origin: string;
  #bytes = '';

  private constructor(server: Server, origin: string) {
    this.#server = server;
    this.#origin = origin;
    server.on('connection', (socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end(this.#bytes, 'latin1'));
    });
  }

  static async start(): Promise<MutantBackend> {
    const server = createServer();
    const port = await listenOnLoopback(server);
    return new MutantBackend(server, `http://127.0.0.1:${port}`);
  }

  readBy(bytes: string): Promise<{ status: number | undefined; body: string } | { error: string }> {
    this.#bytes = bytes;
    return new Promise((resolve) => {
      const failed = (error: unknown): void => resolve({ error: String(error) });
      request(this.#origin, { agent: false }, (res) => {
        buffer(res).then(
          (body) => resolve({ status: res.statusCode, body: body.toString('latin1') }),
          failed,
        );
      })
        .on('error', failed)
        .end();
    });
  }

  async stop(): Promise<void> {
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
