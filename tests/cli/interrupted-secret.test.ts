import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
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

const KEY = JSON.stringify({ id: 'key_1', name: 'interrupted', secret: SECRET, createdAt: 'now' });
const HEAD = { 'X-Request-Id': 'held', 'Content-Type': 'application/json', 'Content-Length': KEY.length };

function respond(res: ServerResponse): void {
  res.writeHead(201, HEAD).end(KEY);
}

/** Sends the head and half of the body, and closes the connection. */
async function breakInside(res: ServerResponse): Promise<void> {
  res.writeHead(201, HEAD);
  await new Promise<void>((sent) => res.write(KEY.slice(0, KEY.length / 2), () => sent()));
  res.socket?.end();
}

describe('a command with --secret-file that is interrupted during its request', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('keeps the secret after %s', async (signal) => {
    const res = await response;
    await interrupt(signal);
    respond(res);
    expect(await ended).toMatchObject({ code: 0, stderr: expect.stringContaining('waits for the response') });
    expect(await readFile(file, 'utf8')).toBe(`${SECRET}\n`);
  });

  it('gets the secret by a retry where the connection breaks in the middle of the response', async () => {
    const first = await response;
    const retried = once(gateway, 'request') as Promise<[IncomingMessage, ServerResponse]>;
    await breakInside(first);
    const [request, res] = await retried;
    expect(request.headers['idempotency-key']).toBe(first.req.headers['idempotency-key']);
    respond(res);
    expect(await ended).toMatchObject({ code: 0, stderr: expect.stringContaining('Trying again') });
    expect(await readFile(file, 'utf8')).toBe(`${SECRET}\n`);
  });

  it('says what may be lost where no whole response comes, and leaves no file', async () => {
    const first = await response;
    gateway.close();
    await breakInside(first);
    const { code, stderr } = await ended;
    expect(code).toBe(75);
    expect(stderr).toContain('The change may have been made');
    expect(stderr).toMatch(/\nThe connection broke before the whole response had come \(\w+\)\. If .*\.\n$/);
    await expect(stat(file)).rejects.toThrow('ENOENT');
  });

  it('says nothing of the kind where the gateway rejects the change', async () => {
    const res = await response;
    res.writeHead(403, { 'X-Request-Id': 'held', 'Content-Type': 'application/json' });
    res.end(JSON.stringify({ code: 'missing_scope', error: 'No.' }));
    expect(await ended).toMatchObject({ code: 3, stderr: 'No.\n' });
  });

  it('ends with the next signal, leaves no file, and says what may be lost', async () => {
    await response;
    await interrupt('SIGINT');
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 1, stderr: expect.stringContaining('tollgate keys rotate') });
    await expect(stat(file)).rejects.toThrow('ENOENT');
  });
});
