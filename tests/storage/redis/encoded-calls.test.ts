import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { pino } from 'pino';
import { systemRandom } from '../../../src/platform/random.ts';
import { LuaScript } from '../../../src/storage/redis/lua-script.ts';
import { connectRedis, type RedisPurpose } from '../../../src/storage/redis/redis-connection.ts';
import { codePoint } from '../../support/code-point.ts';
import { listenOnLoopback } from '../../support/listen-on-loopback.ts';
import { until } from '../../support/until.ts';
import { isInYoungGeneration } from '../../support/young-generation.ts';

const FILE = new URL('../../../src/storage/redis/counters/readWindows-n.lua', import.meta.url);
const SHA = createHash('sha1').update(readFileSync(FILE)).digest('hex');
const INFO = 'redis_version:8.0\r\nloading:0\r\n';
const READY = `$${INFO.length}\r\n${INFO}\r\n`;

/** A server that speaks only as much of the protocol as a client needs to connect, and replies to script calls as a test says. */
class ScriptedRedis {
  /** Bytes of each script call, in the order of their arrival. */
  readonly calls: string[] = [];
  /** Called with each script call. */
  onCall: (socket: Socket, call: string) => void = () => {};
  connections = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  constructor() {
    this.#server = createServer({ noDelay: true }, (socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      let unread = '';
      socket.on('error', () => {});
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('data', (chunk: Buffer) => {
        unread += chunk.toString('latin1');
        for (let end = endOfCommand(unread); end > 0; end = endOfCommand(unread)) {
          this.#serve(socket, unread.slice(0, end));
          unread = unread.slice(end);
        }
      });
    });
  }

  async start(): Promise<number> {
    return listenOnLoopback(this.#server);
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(socket: Socket, command: string): void {
    if (/^\*\d+\r\n\$\d+\r\neval/i.test(command)) {
      this.calls.push(command);
      this.onCall(socket, command);
    } else {
      socket.write(/\r\ninfo\r\n/i.test(command) ? READY : '+OK\r\n');
    }
  }
}

/** Where the first command of the bytes ends; 0 where it is not complete. */
function endOfCommand(bytes: string): number {
  const [head = '', count] = /^\*(\d+)\r\n/.exec(bytes) ?? [];
  if (count === undefined) return 0;
  let at = head.length;
  for (let i = 0; i < Number(count); i += 1) {
    const [length, size] = /^\$(\d+)\r\n/.exec(bytes.slice(at, at + 20)) ?? [];
    if (length === undefined) return 0;
    at += length.length + Number(size) + 2;
    if (at > bytes.length) return 0;
  }
  return at;
}

type Call = (redis: Redis, keys: readonly string[], args: readonly string[]) => Promise<unknown>;
type Outcome = { readonly reply: unknown } | { readonly error: string };

const script = new LuaScript(FILE);
/** The gateway's own way to send a script call, and the client's. */
const encoded: Call = (redis, keys, args) =>
  new Promise((resolve, reject) => {
    script.callWithKeys(redis, keys, args, (error, reply) => (error ? reject(error) : resolve(reply)));
  });
const ofClient: Call = (redis, keys, args) =>
  redis.evalsha(SHA, keys.length, ...keys, ...args) as Promise<unknown>;
const WAYS = [encoded, ofClient] as const;

let server: ScriptedRedis;
const open: Redis[] = [];

beforeEach(() => {
  server = new ScriptedRedis();
});
afterEach(async () => {
  for (const redis of open.splice(0)) redis.disconnect();
  await server.stop();
});

async function connected(port: number, purpose: RedisPurpose = 'decisions'): Promise<Redis> {
  const address = {
    ...{ nodes: [{ host: '127.0.0.1', port }], isTls: false, username: undefined, password: undefined },
    ...{ database: 0, masterName: undefined, sentinelPassword: undefined },
  };
  const redis = connectRedis(
    purpose,
    { address, mode: 'single', timeoutMs: 10 },
    { log: pino({ level: 'silent' }), random: systemRandom },
  ) as Redis;
  open.push(redis);
  redis.on('error', () => {});
  await until(() => redis.status === 'ready');
  return redis;
}

async function outcomeOf(reply: Promise<unknown>): Promise<Outcome> {
  return reply.then(
    (value) => ({ reply: value }),
    (error: Error) => ({ error: `${error.name}: ${error.message}` }),
  );
}

describe('a script call that is encoded at once', () => {
  it('is byte for byte what the client would send', async () => {
    const redis = await connected(await server.start());
    server.onCall = (socket) => socket.write(':1\r\n');
    const texts = fc.array(fc.string({ unit: codePoint, maxLength: 20 }), { maxLength: 5 });
    const odd = fc.constantFrom('', '\r\n', '$3\r\nfoo\r\n', '\0', '\ud800', '€', '😀');
    await fc.assert(
      fc.asyncProperty(texts, fc.array(odd, { maxLength: 5 }), async (keys, args) => {
        for (const call of WAYS) await call(redis, keys, args);
        const [own, clients] = server.calls.splice(0);
        expect(own).toBe(clients);
      }),
      { numRuns: 200 },
    );
  });

  it.each([
    ['a text', '$5\r\nh\u00e9llo\r\n'.replace('\u00e9', '\u00c3\u00a9').replace('$5', '$6')],
    ['a number', ':-42\r\n'],
    ['nothing', '$-1\r\n'],
    ['a list', '*3\r\n$1\r\na\r\n:7\r\n*1\r\n$0\r\n\r\n'],
    ['an error', '-ERR wrong number of keys\r\n'],
    ['an error in a list', '*2\r\n:1\r\n-ERR inner\r\n'],
  ])('has the reply that the client gives, split at each byte: %s', async (_what, reply) => {
    const redis = await connected(await server.start());
    const bytes = Buffer.from(`${reply}:99\r\n`, 'latin1');
    for (let at = 1; at < bytes.length; at += 1) {
      const outcomes: (readonly Outcome[])[] = [];
      for (const call of WAYS) {
        let received = 0;
        server.onCall = (socket) => {
          received += 1;
          if (received < 2) return;
          socket.write(bytes.subarray(0, at), () => setImmediate(() => socket.write(bytes.subarray(at))));
        };
        // The second call shows whether the first one took its own reply, and nothing of the next.
        const calls = [call(redis, ['a'], []), call(redis, ['b'], [])];
        outcomes.push(await Promise.all(calls.map(outcomeOf)));
      }
      expect(outcomes[0]).toEqual(outcomes[1]);
      expect(outcomes[0]?.[1]).toEqual({ reply: 99 });
    }
  });

  it.each([
    'MOVED 42 127.0.0.1:1',
    'ASK 42 127.0.0.1:1',
    'TRYAGAIN Multiple keys request during rehashing of slot',
    'CLUSTERDOWN The cluster is down',
    'LOADING Redis is loading the dataset in memory',
    'READONLY You can not write against a read only replica.',
    'MASTERDOWN Link with MASTER is down',
    'BUSY Redis is busy running a script.',
    'OOM command not allowed when used memory > maxmemory.',
    'NOAUTH Authentication required.',
  ])('fails as a call of the client does, once and for good: %s', async (error) => {
    const port = await server.start();
    const seen: unknown[] = [];
    for (const call of WAYS) {
      const redis = await connected(port);
      server.onCall = (socket) => socket.write(`-${error}\r\n`);
      // READONLY makes both connect again, to find the master.
      const isLeft = error.startsWith('READONLY');
      const left = isLeft ? once(redis, 'close') : undefined;
      const outcome = await outcomeOf(call(redis, ['a'], []));
      await left;
      await until(() => redis.status === 'ready');
      server.onCall = (socket) => socket.write(':1\r\n');
      expect(await call(redis, ['a'], [])).toBe(1);
      seen.push([outcome, server.calls.splice(0).length, isLeft]);
    }
    expect(seen[0]).toEqual(seen[1]);
    expect(seen[0]).toEqual([{ error: `ReplyError: ${error}` }, 2, error.startsWith('READONLY')]);
  });

  it('that had no reply when its connection ended fails, and is never sent again', async () => {
    const port = await server.start();
    const seen: unknown[] = [];
    for (const call of WAYS) {
      const redis = await connected(port);
      server.onCall = (socket, bytes) => {
        if (bytes.endsWith('first\r\n')) socket.write(':1\r\n');
        // In mid-reply to the second of four.
        else if (bytes.endsWith('second\r\n')) socket.write('$10\r\nabc', () => socket.destroy());
      };
      const calls = ['first', 'second', 'third', 'fourth'].map((key) => call(redis, [key], []));
      const outcomes = await Promise.all(calls.map(outcomeOf));
      await until(() => redis.status === 'ready');
      server.onCall = (socket) => socket.write(':5\r\n');
      expect(await call(redis, ['fifth'], [])).toBe(5);
      const sent = server.calls.splice(0).map((bytes) => /(\w+)\r\n$/.exec(bytes)?.[1]);
      seen.push(outcomes);
      expect(sent.filter((key) => key === 'fifth')).toHaveLength(1);
      expect(new Set(sent).size).toBe(sent.length);
    }
    expect(seen[0]).toEqual(seen[1]);
    expect(seen[0]).toMatchObject([
      { reply: 1 },
      { error: expect.any(String) },
      {},
      { error: expect.any(String) },
    ]);
  });

  it('is rejected at once while there is no connection, and after the last one', async () => {
    const port = await server.start();
    const seen: unknown[] = [];
    for (const call of WAYS) {
      const redis = await connected(port);
      redis.stream.destroy();
      const away = await outcomeOf(call(redis, ['a'], []));
      redis.disconnect();
      await until(() => redis.status === 'end');
      seen.push([away, await outcomeOf(call(redis, ['a'], []))]);
    }
    expect(seen[0]).toEqual(seen[1]);
    expect(seen[0]).toEqual([
      { error: expect.stringContaining('writeable') },
      { error: expect.stringContaining('closed') },
    ]);
    expect(server.calls).toEqual([]);
  });

  it('that is no decision times out as others do, and its late reply is dropped', async () => {
    const port = await server.start();
    const seen: unknown[] = [];
    for (const call of WAYS) {
      const redis = await connected(port, 'usage');
      const late: Socket[] = [];
      server.onCall = (socket) => late.push(socket);
      const first = await outcomeOf(call(redis, ['a'], []));
      const second = outcomeOf(call(redis, ['b'], []));
      await until(() => late.length === 2);
      late[0]?.write(':1\r\n:2\r\n');
      seen.push([first, await second]);
    }
    expect(seen[0]).toEqual(seen[1]);
    expect(seen[0]).toEqual([{ error: 'Error: Command timed out' }, { reply: 2 }]);
  });

  it('whose script is unknown is sent once more with the text, and not a third time', async () => {
    const redis = await connected(await server.start());
    server.onCall = (socket) => socket.write('-NOSCRIPT No matching script.\r\n');
    expect(await outcomeOf(encoded(redis, ['a'], ['b']))).toEqual({
      error: 'ReplyError: NOSCRIPT No matching script.',
    });
    expect(server.calls.map((bytes) => /\$\d+\r\n(\w+)/.exec(bytes)?.[1])).toEqual(['evalsha', 'eval']);
  });

  it('fails when its connection ends between digest and text, and ran at most once', async () => {
    const redis = await connected(await server.start());
    server.onCall = (socket, bytes) => {
      if (/\r\nevalsha\r\n/.test(bytes))
        socket.write('-NOSCRIPT No matching script.\r\n', () => socket.destroy());
    };
    expect(await outcomeOf(encoded(redis, ['a'], []))).toEqual({ error: expect.any(String) });
    await until(() => redis.status === 'ready' && server.connections >= 2);
    expect(server.calls.length).toBeLessThanOrEqual(2);
  });

  it('has no function in the old generation, which would keep its reply there', async () => {
    const redis = await connected(await server.start());
    server.onCall = (socket) => socket.write(':1\r\n');
    const isYoung: boolean[] = [];
    const send = redis.sendCommand.bind(redis);
    redis.sendCommand = (command, stream) => {
      isYoung.push([command.resolve, command.reject].every(isInYoungGeneration));
      return send(command, stream);
    };
    await encoded(redis, ['a'], []);
    expect(isYoung).toEqual([true]);
  });

  it('has no arguments in the error that the client makes of it', async () => {
    const redis = await connected(await server.start());
    server.onCall = (socket) => socket.write('-ERR no\r\n');
    const error: unknown = await encoded(redis, ['a-key'], ['an-argument']).catch((reason) => reason);
    expect(error).toMatchObject({ command: { name: 'evalsha', args: [] } });
  });
});
