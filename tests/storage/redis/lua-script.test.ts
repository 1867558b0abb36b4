import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LuaScript } from '../../../src/storage/redis/lua-script.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';

describe('a script call', () => {
  let server: RedisServer;
  let redis: Redis;
  let directory: string;
  let echo: LuaScript;

  beforeAll(async () => {
    server = await startRedisServer();
    redis = new Redis(server.url);
    directory = await mkdtemp(join(tmpdir(), 'tollgate-script-'));
    const file = join(directory, 'echo-n.lua');
    await writeFile(file, 'return {KEYS, ARGV}');
    echo = new LuaScript(pathToFileURL(file));
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
    await rm(directory, { recursive: true });
  });

  // The first call is sent with the text of the script, because the server does not know it: so each is made twice.
  it.each([
    ['plain ASCII', ['a:{1}', 'b'], ['1 2', '']],
    ['a character of two bytes', ['k\u00e9y'], ['plain']],
    ['characters of three and four bytes', ['key'], ['\u65e5\u672c', '\u{1f511}', 'plain']],
    ['line ends and lengths that look like the protocol', ['key'], ['$3\r\nabc\r\n*1\r\n', '\r\n']],
    ['none', [], []],
  ])('passes on %s as it is', async (_what, keys, args) => {
    for (let time = 0; time < 2; time += 1)
      expect(await echo.runWithKeys(redis, keys, args)).toEqual([keys, args]);
    expect(await redis.ping()).toBe('PONG');
  });
});
