import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { freePort } from '../../support/free-port.ts';
import { decide, newKeyId, openReplica, subject } from '../../support/limiter-stores.ts';
import { redisBinary } from '../../support/redis-binary.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { until } from '../../support/until.ts';

const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

/** Starts a sentinel that watches the master, and resolves with its port when it answers. */
async function startSentinel(masterName: string, masterPort: number): Promise<number> {
  const binary = await redisBinary();
  if (binary === undefined) throw new Error('No redis-server on the PATH.');
  const port = await freePort();
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-sentinel-'));
  const configuration = join(directory, 'sentinel.conf');
  await writeFile(
    configuration,
    `port ${port}\nbind 127.0.0.1\nsentinel monitor ${masterName} 127.0.0.1 ${masterPort} 1\n`,
  );
  const child = spawn(binary, [configuration, '--sentinel'], { stdio: 'ignore', cwd: directory });
  stops.push(async () => {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
    await rm(directory, { recursive: true, force: true });
  });
  const direct = new Redis(port, '127.0.0.1', { lazyConnect: true, retryStrategy: () => 20 });
  direct.on('error', () => {});
  await until(
    () =>
      direct.ping().then(
        () => true,
        () => false,
      ),
    { timeoutMs: 10_000 },
  );
  direct.disconnect();
  return port;
}

describe('a replica in sentinel mode', () => {
  it('finds the master by the name that the sentinels know', async () => {
    const server = await startRedisServer();
    stops.push(() => server.stop());
    const port = await startSentinel('orders', server.port);
    const replica = openReplica(`redis://127.0.0.1:${port},127.0.0.1:${port}/orders`, 'sentinel');
    stops.push(() => replica.close());
    expect(await replica.waitUntilReady(10_000)).toBe(true);
    expect(await decide(replica.limiter, subject(newKeyId()))).toMatchObject({ kind: 'admitted' });
  });
});
