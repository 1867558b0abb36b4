import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { windowKeyName } from '../../src/storage/redis/redis-key-names.ts';
import { requireProgram } from '../support/debian-package.ts';
import { startRedisServer } from '../support/redis-server.ts';

const run = promisify(execFile);

it('the runbook empties Redis of all that is ours, whatever customers are named', async () => {
  await requireProgram('redis-cli', 'redis-tools');
  const [, command = ''] = /`(redis-cli .*--scan .*)`/.exec(await readFile('docs/runbook.md', 'utf8')) ?? [];
  const server = await startRedisServer();
  const redis = new Redis(server.url);
  try {
    const customers = ["O'Brien GmbH", 'a "quoted" name', 'back\\slash', '$(reboot)', '-x', 'plain'];
    for (const customer of customers) await redis.set(windowKeyName('key_1', `main:${customer}`), 1);
    await redis.set("other's", 1);
    await run('sh', ['-c', command], { env: { ...process.env, REDIS_URL: server.url } });
    expect(await redis.keys('*')).toEqual(["other's"]);
  } finally {
    redis.disconnect();
    await server.stop();
  }
});
