import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';
import { redisBinary } from './redis-binary.ts';
import { answersPing } from './redis-server.ts';
import { until } from './until.ts';

/** A sentinel of a test's own. */
export interface RedisSentinel {
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts a sentinel that watches the master under a name, with further lines of configuration. Resolves when it answers. */
export async function startSentinel(
  masterName: string,
  masterPort: number,
  configuration: readonly string[] = [],
): Promise<RedisSentinel> {
  const binary = await redisBinary();
  if (binary === undefined) throw new Error('No redis-server on the PATH.');
  const port = await freePort();
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-sentinel-'));
  const file = join(directory, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `sentinel monitor ${masterName} 127.0.0.1 ${masterPort} 1`,
  ];
  await writeFile(file, `${[...lines, ...configuration].join('\n')}\n`);
  const child = spawn(binary, [file, '--sentinel'], { stdio: 'ignore', cwd: directory });
  const onExit = () => child.kill('SIGKILL');
  process.once('exit', onExit);
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }
    process.removeListener('exit', onExit);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await until(() => answersPing(port), { timeoutMs: 10_000 });
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, stop };
}
