import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { paths } from '../../src/client/management-api.ts';
import { bodyOf, createManagementClient, type ManagementClient } from '../../src/client/management-client.ts';
import { requireProgram } from '../support/debian-package.ts';
import { endChild } from '../support/end-child.ts';
import { until } from '../support/until.ts';
import { COMMAND_LINE } from './support/command-on-path.ts';
import { runTollgate } from './support/run-tollgate.ts';

type UsageOperation = paths['/api-keys/usage']['get'];
type UsageQuery = NonNullable<UsageOperation['parameters']['query']>;
type Series = UsageOperation['responses'][200]['content']['application/json'];

const run = promisify(execFile);
const ANY_PORTS = { PORT: '0', OPS_PORT: '0' };

/** As a person sees it: on a pseudo terminal, to which they type. */
function startOnTerminal(): { child: ChildProcess; output: () => string; type: (keys: string) => void } {
  const { PATH = '' } = process.env;
  const child = spawn('script', ['-qec', `${COMMAND_LINE} demo`, '/dev/null'], {
    env: { PATH, SHELL: '/bin/sh', TERM: 'xterm', LOG_LEVEL: 'info', ...ANY_PORTS },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let written = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    written += chunk.replaceAll('\r', '');
  });
  return { child, output: () => written, type: (keys) => void child.stdin.write(keys) };
}

describe('the demo on a terminal', () => {
  let demo: ReturnType<typeof startOnTerminal>;
  let url: string;
  let readOnly: ManagementClient;
  let root: ManagementClient;

  beforeAll(async () => {
    await requireProgram('curl', 'curl');
    await requireProgram('script', 'bsdutils');
    demo = startOnTerminal();
    await until(() => demo.child.exitCode !== null || demo.output().includes('Ctrl-C'));
    url = /Tollgate runs at (\S+),/.exec(demo.output())?.[1] ?? '';
    readOnly = createManagementClient({ url, token: /^ {2}(tga_\S+)$/m.exec(demo.output())?.[1] ?? '' });
    const rootToken = /^The root token.*\n {2}(\S+)$/m.exec(demo.output())?.[1] ?? '';
    root = createManagementClient({ url, token: rootToken });
  });
  afterAll(() => endChild(demo.child));

  /** Runs the command lines that the demo printed under a heading, as a user pastes them into a shell. */
  async function paste(heading: string): Promise<string> {
    const [, commands = ''] = new RegExp(`${heading}.*\\n((?: {2}.*\\n)+)`).exec(demo.output()) ?? [];
    expect(commands).not.toBe('');
    return (await run('sh', ['-c', commands])).stdout;
  }

  async function usage(query: UsageQuery): Promise<Series['rows']> {
    const { data } = await readOnly.GET('/api-keys/usage', { params: { query } });
    return (data as Series).rows;
  }

  it('sends the first requests before anything else', () => {
    expect(demo.output()).toMatch(
      /six requests with a key +200 200 200 200 200 429\n +one without a key +401\n/,
    );
    expect(demo.output()).toContain(`${url}/tollgate/console`);
  });

  it('responds to the curl lines that it printed', async () => {
    const statuses = (await paste('With a key')).match(/\d{3}$/gm);
    expect(statuses).toEqual(['200', '200', '200', '200', '200', '429']);
    expect(await paste('Without a key')).toMatch(/"missing_api_key".*\n401\n$/);
    expect(JSON.parse(await paste('What the key was used for'))).toMatchObject({
      usage: { rateLimits: { limit: 5, remaining: 0 } },
    });
    expect(await paste('The limits in the headers of the response')).toMatch(
      /RateLimit-Policy: "demo";q=5;w=60[\s\S]*tollgate_requests_total/,
    );
  });

  it('prints a token that may read everything, change nothing, and expires', async () => {
    const { type, scopes, expiresAt } = await bodyOf(readOnly.GET('/tollgate/whoami'));
    expect(type).toBe('token');
    expect(scopes).toEqual(['keys:read', 'plans:read', 'usage:read', 'audit:read']);
    expect(Date.parse(expiresAt ?? '')).toBeGreaterThan(Date.now());
    const body = { name: 'not with this token' };
    const { response } = await readOnly.POST('/consumer-api-key/create', { body });
    expect(response.status).toBe(403);
  });

  it('sends traffic that is allowed, limited and failed, at several endpoints', async () => {
    await until(async () => {
      const [total] = await usage({ interval: 'total' });
      return total !== undefined && total.successful > 0 && total.rateLimited > 0 && total.serverErrors > 0;
    });
    const rows = await usage({ interval: 'day', groupBy: 'endpoint' });
    expect(rows.map(({ endpoint }) => endpoint)).toEqual(
      expect.arrayContaining(['/v1/orders/{id}', '/v1/invoices/{id}', '/v1/prices']),
    );
  });

  it('has lived through a day, hour by hour, before it shows the console', async () => {
    const hours = async () => (await usage({ interval: 'hour' })).length;
    await until(async () => (await hours()) >= 23);
  });

  it('has one consumer near its limit, and another one limited', async () => {
    const query = { include: 'limits' } as const;
    const tightest = async (name: string) => {
      const { apiKeys } = await bodyOf(readOnly.GET('/consumer-api-key', { params: { query } }));
      const limits = apiKeys.find((key) => key.name === name)?.limits ?? [];
      return Math.min(...limits.map(({ remaining, limit }) => (remaining ?? limit) / limit));
    };
    await until(async () => (await tightest('Price crawler')) === 0);
    await until(async () => (await tightest('Nightly import')) < 0.2);
    expect(await tightest('Nightly import')).toBeGreaterThan(0);
  });

  it('leaves nothing behind after Ctrl-C', async () => {
    const directory = /"DATA_DIR":"([^"]+)"/.exec(demo.output())?.[1] ?? '';
    expect(existsSync(directory)).toBe(true);
    expect((await root.GET('/tollgate/whoami')).data?.type).toBe('root');
    // Twice, as npm passes on the signal that the terminal has sent already.
    demo.type('\u0003\u0003');
    expect((await once(demo.child, 'exit'))[0]).toBe(0);
    expect(existsSync(directory)).toBe(false);
  });
});

describe('the demo without a terminal, where the usual ports are busy', () => {
  it('takes others, sends the first requests, says why it ends, and leaves nothing behind', async () => {
    // Another program of this machine may have taken them: they are busy then as well.
    const holders = [8080, 9090].map((port) =>
      createServer()
        .on('error', () => {})
        .listen(port, '127.0.0.1'),
    );
    try {
      const { code, stdout, stderr } = await runTollgate(['demo'], { environment: { LOG_LEVEL: 'info' } });
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(/Tollgate runs at http:\/\/127\.0\.0\.1:(?!8080,)\d+,/);
      expect(stdout).toContain('200 200 200 200 200 429');
      expect(stdout).toContain('"npm run demo -- --stay"');
      expect(stdout).not.toContain('tga_');
      expect(stdout).not.toContain('"level":40');
      const directory = /"DATA_DIR":"([^"]+)"/.exec(stdout)?.[1] ?? '';
      expect(directory).not.toBe('');
      expect(existsSync(directory)).toBe(false);
    } finally {
      for (const holder of holders) holder.close();
    }
  });
});
