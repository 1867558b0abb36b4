import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { requireProgram } from '../support/debian-package.ts';
import { spawnNode } from '../support/gateway.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const DEMO = resolve(import.meta.dirname, '../../src/cli/demo.ts');

let demo: ReturnType<typeof spawnNode>;

beforeAll(async () => {
  await requireProgram('curl', 'curl');
  demo = spawnNode(DEMO, { LOG_LEVEL: 'info' });
  await until(() => demo.child.exitCode !== null || demo.output().includes('Ctrl-C'));
});
afterAll(() => void demo.child.kill('SIGKILL'));

/** Runs the command lines that the demo printed under a heading, as a user pastes them into a shell. */
async function paste(heading: string): Promise<string> {
  const [, commands = ''] = new RegExp(`^${heading}.*\\n((?: {2}.*\\n)+)`, 'm').exec(demo.output()) ?? [];
  expect(commands).not.toBe('');
  return (await run('sh', ['-c', commands])).stdout;
}

describe('the demo', () => {
  it('responds to the curl lines that it printed', async () => {
    const statuses = (await paste('With the key')).match(/\d{3}$/gm);
    expect(statuses).toEqual(['200', '200', '200', '200', '200', '429']);
    expect(await paste('Without a key')).toMatch(/"missing_api_key".*\n401\n$/);
    expect(JSON.parse(await paste('What the key was used for'))).toMatchObject({
      usage: { rateLimits: { limit: 5, remaining: 0 } },
    });
    expect(await paste("The limits in the response's header fields")).toMatch(
      /RateLimit-Policy: "demo";q=5;w=60[\s\S]*tollgate_requests_total/,
    );
  });

  it('leaves nothing behind after Ctrl-C', async () => {
    const directory = /"DATA_DIR":"([^"]+)"/.exec(demo.output())?.[1] ?? '';
    expect(existsSync(directory)).toBe(true);
    demo.child.kill('SIGINT');
    expect((await once(demo.child, 'exit'))[0]).toBe(0);
    expect(existsSync(directory)).toBe(false);
  });
});
