import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type EndedCommand, runTollgate } from './support/run-tollgate.ts';

const SECRET = 'tg_secret-of-an-interrupted-command';

let directory: string;
let file: string;
let gateway: Server;
/** The response to the first request, which the test sends. */
let response: Promise<ServerResponse>;
let child: ChildProcess;
let ended: Promise<EndedCommand>;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-cli-'));
  file = join(directory, 'secret');
  gateway = createServer().listen(0, '127.0.0.1');
  await once(gateway, 'listening');
  response = once(gateway, 'request').then(([, res]) => res as ServerResponse);
  const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
  ended = runTollgate(['keys', 'create', 'interrupted', '--secret-file', file], {
    environment: { TOLLGATE_URL: url, TOLLGATE_TOKEN: 'token' },
    onStart: (started) => {
      child = started;
    },
  });
});
afterEach(async () => {
  gateway.closeAllConnections();
  gateway.close();
  await rm(directory, { recursive: true, force: true });
});

/** Sends the signal, and waits until the command has noticed it. */
async function interrupt(signal: NodeJS.Signals): Promise<void> {
  const noticed = once(child.stderr ?? child, 'data');
  child.kill(signal);
  await noticed;
}

describe('a command with --secret-file that is interrupted during its request', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('keeps the secret after %s', async (signal) => {
    const res = await response;
    await interrupt(signal);
    res.setHeader('X-Request-Id', 'held').setHeader('Content-Type', 'application/json');
    res.end(JSON.stringify({ id: 'key_1', name: 'interrupted', secret: SECRET, createdAt: 'now' }));
    expect(await ended).toMatchObject({ code: 0, stderr: expect.stringContaining('waits for the response') });
    expect(await readFile(file, 'utf8')).toBe(`${SECRET}\n`);
  });

  it('ends with the next signal, leaves no file, and says what may be lost', async () => {
    await response;
    await interrupt('SIGINT');
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 1, stderr: expect.stringContaining('tollgate keys rotate') });
    await expect(stat(file)).rejects.toThrow('ENOENT');
  });
});
