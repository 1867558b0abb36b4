import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { type IncomingHttpHeaders, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startManagement, type TestManagement } from './start-management.ts';

const PAGE = '<!doctype html><title>Tollgate</title>'.repeat(8);
const SCRIPT = 'export const number = 42;'.repeat(20);
const ICON = '<svg xmlns="http://www.w3.org/2000/svg"/>';

let directory: string;
let management: TestManagement;
let port: number;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-console-'));
  await writeFile(join(directory, 'secret.json'), '{}');
  const built = join(directory, 'console');
  await mkdir(join(built, 'assets'), { recursive: true });
  for (const [name, text] of [
    ['index.html', PAGE],
    ['assets/main-4f2a.js', SCRIPT],
    ['assets/.hidden.js', SCRIPT],
  ] as const) {
    await writeFile(join(built, name), text);
    await writeFile(join(built, `${name}.br`), brotliCompressSync(text));
    await writeFile(join(built, `${name}.gz`), gzipSync(text));
  }
  await writeFile(join(built, 'icon.svg'), ICON);
  await mkdir(join(built, 'assets', 'folder.js'));
  management = await startManagement({ consoleDirectory: built });
  port = await management.listen();
});
afterAll(async () => {
  await management?.stop();
  await rm(directory, { recursive: true, force: true });
});

interface Received {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Asks for a path exactly as it is written: `fetch` would resolve its dots. */
async function get(
  path: string,
  { method = 'GET', ...headers }: Readonly<Record<string, string>> = {},
): Promise<Received> {
  const asked = request({ host: '127.0.0.1', port, path: `/tollgate/console${path}`, method, headers });
  const response = await new Promise<Parameters<typeof buffer>[0] & Omit<Received, 'body'>>(
    (resolve, reject) => {
      asked.on('response', (res) => resolve(Object.assign(res, { status: res.statusCode })));
      asked.on('error', reject).end();
    },
  );
  return { status: response.status, headers: response.headers, body: await buffer(response) };
}

describe('a page of the console', () => {
  it.each([
    '',
    '/',
    '/index.html',
    '/keys',
    '/keys/key_01KGH3V6ZQ5T8M2N4P6R8S0T2V',
    '/plans/v1.0.js',
    '/usage?from=2026-11-01',
  ])('is the same file, for every client that asks for it: %s', async (path) => {
    const { status, headers, body } = await get(path);
    expect([status, body.toString()]).toEqual([200, PAGE]);
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      vary: 'Accept-Encoding',
      'content-security-policy':
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    });
    expect(headers['x-powered-by']).toBeUndefined();
  });

  it('has a tag by which it is sent again only when it has changed', async () => {
    const first = await get('/keys');
    const { etag = '' } = first.headers;
    const same = await get('/plans', { 'if-none-match': etag });
    expect([same.status, same.body.length, same.headers.etag]).toEqual([304, 0, etag]);
    // As in an npm package, where all files have the same date: neither length nor date tell two builds apart.
    const path = join(directory, 'console', 'index.html');
    await writeFile(path, PAGE.replace('Tollgate', 'Etagllot'));
    await utimes(path, 0, 0);
    expect((await get('/keys', { 'if-none-match': etag })).status).toBe(200);
    await writeFile(path, PAGE);
  });

  it('has no body for HEAD, and the same headers', async () => {
    const shown = await get('/');
    const { status, headers, body } = await get('/', { method: 'HEAD' });
    expect([status, body.length, headers.etag]).toEqual([200, 0, shown.headers.etag]);
    expect(headers['content-length']).toBe(String(PAGE.length));
  });
});

describe('a file of the console', () => {
  it('with a hash in its name may be kept for ever', async () => {
    const { status, headers, body } = await get('/assets/main-4f2a.js');
    expect([status, body.toString()]).toEqual([200, SCRIPT]);
    expect(headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
    });
  });

  it('without one is asked for again, and need not have compressed copies', async () => {
    const { status, headers, body } = await get('/icon.svg', { 'accept-encoding': 'br, gzip' });
    expect([status, body.toString()]).toEqual([200, ICON]);
    expect(headers).toMatchObject({ 'content-type': 'image/svg+xml', 'cache-control': 'no-cache' });
    expect(headers['content-encoding']).toBeUndefined();
  });

  it.each([
    ['gzip, deflate, br, zstd', 'br'],
    ['br;q=0.1, gzip', 'br'],
    ['*', 'br'],
    ['gzip', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['zstd', undefined],
    ['br;q=0, gzip;q=0', undefined],
    ['', undefined],
  ])('is sent in the coding that the client takes: %j', async (accepted, coding) => {
    const decoded = { br: brotliDecompressSync, gzip: gunzipSync } as const;
    for (const [path, text] of [
      ['/', PAGE],
      ['/assets/main-4f2a.js', SCRIPT],
    ] as const) {
      const { headers, body } = await get(path, { 'accept-encoding': accepted });
      expect([headers['content-encoding'], headers.vary]).toEqual([coding, 'Accept-Encoding']);
      const decode = decoded[coding as keyof typeof decoded] ?? ((bytes: Buffer) => bytes);
      expect(decode(body).toString()).toBe(text);
      expect(headers['content-length']).toBe(String(body.length));
    }
  });

  it.each([
    '/assets/gone-4f2a.js',
    '/assets/main-4f2a.js.br',
    '/assets/main-4f2a.js.gz',
    '/assets/.hidden.js',
    '/assets/..%2fsecret.json',
    '/assets/%2fetc%2fpasswd',
    '/assets/main-4f2a.js%2f..%2fmain-4f2a.js',
    '/assets/%6dain-4f2a.js%00.js',
    '/assets/folder.js',
    '/assets/folder.js/',
    '/assets/a/b',
    '/favicon.ico',
    '/.env',
    '/.%2e/secret.json',
    '/%2e%2e%2fsecret.json',
    '/../secret.json',
    '/assets/../../secret.json',
    '/assets/..\\..\\secret.json',
    '/secret.json',
    '/%zz.js',
  ])('that there is not is an error and never another file: %s', async (path) => {
    const { status, headers, body } = await get(path);
    expect([400, 404]).toContain(status);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(headers['cache-control'] ?? 'no-store').toBe('no-store');
    expect(JSON.parse(body.toString()).code).toMatch(/^(not_found|bad_request)$/);
  });

  it('is read only', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      const { status, headers } = await get('/assets/main-4f2a.js', { method });
      expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
    }
  });

  it('is whole, whatever part of it was asked for', async () => {
    const { status, body } = await get('/assets/main-4f2a.js', { range: 'bytes=0-3' });
    expect([status, body.toString()]).toEqual([200, SCRIPT]);
  });
});

describe('the console', () => {
  it('is at its own path only', async () => {
    for (const path of ['s', 's/keys', '%2f..%2fwhoami']) {
      const { status, body } = await get(path);
      expect([401, 404, 400]).toContain(status);
      expect(body.toString()).not.toContain('<title>');
    }
    await management.bare('get', '/tollgate/Console').expect(404);
  });

  it('that was not built says what to do', async () => {
    const empty = await startManagement({ consoleDirectory: join(directory, 'nowhere') });
    const { text, headers } = await empty.bare('get', '/tollgate/console/keys').expect(404);
    expect(text).toBe('The console is not built: run "npm run build:console".\n');
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
    await empty.bare('get', '/tollgate/console/assets/main-4f2a.js').expect(404);
    await empty.stop();
  });

  it('that is switched off is an unknown path', async () => {
    const off = await startManagement();
    for (const path of ['/tollgate/console', '/tollgate/console/assets/main-4f2a.js']) {
      const { body } = await off.bare('get', path).expect(404);
      expect(body.code).toBe('not_found');
    }
    await off.stop();
  });
});
