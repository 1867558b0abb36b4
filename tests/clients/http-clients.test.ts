import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { buffer, json } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import axios from 'axios';
import got from 'got';
import { fetch, Pool } from 'undici';
import { withClientStage } from './support/stage.ts';

const stage = withClientStage();

/** What is asked of every client, in its own words. */
interface HttpClient {
  readonly name: string;
  postJson(url: string, body: object): Promise<unknown>;
  upload(url: string, body: Readable): Promise<unknown>;
  download(url: string): Promise<Buffer>;
  status(url: string): Promise<number>;
  /** Rejects when it has been aborted. */
  abortable(url: string, signal: AbortSignal): Promise<unknown>;
}

const headers = (): { authorization: string } => ({ authorization: `Bearer ${stage.key.secret}` });

const CLIENTS: readonly HttpClient[] = [
  {
    name: 'undici',
    postJson: async (url, body) =>
      (
        await fetch(url, {
          method: 'POST',
          headers: { ...headers(), 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
      ).json(),
    upload: async (url, body) =>
      (await fetch(url, { method: 'PUT', headers: headers(), body, duplex: 'half' })).json(),
    download: async (url) => Buffer.from(await (await fetch(url, { headers: headers() })).arrayBuffer()),
    status: async (url) => (await fetch(url, { headers: headers() })).status,
    abortable: async (url, signal) => (await fetch(url, { headers: headers(), signal })).text(),
  },
  {
    name: 'axios',
    postJson: async (url, body) => (await axios.post(url, body, { headers: headers() })).data,
    upload: async (url, body) => (await axios.put(url, body, { headers: headers() })).data,
    download: async (url) => (await axios.get(url, { headers: headers(), responseType: 'arraybuffer' })).data,
    status: async (url) => (await axios.get(url, { headers: headers(), validateStatus: () => true })).status,
    abortable: (url, signal) => axios.get(url, { headers: headers(), signal }),
  },
  {
    name: 'got',
    postJson: (url, body) => got.post(url, { json: body, headers: headers() }).json(),
    upload: (url, body) => got.put(url, { body, headers: headers() }).json(),
    download: async (url) => Buffer.from(await got(url, { headers: headers() }).buffer()),
    status: async (url) =>
      (await got(url, { headers: headers(), throwHttpErrors: false, retry: { limit: 0 } })).statusCode,
    abortable: (url, signal) => got(url, { headers: headers(), signal, retry: { limit: 0 } }).text(),
  },
];

function sha256(data: Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

describe.each(CLIENTS)('$name through the gateway', (client) => {
  const url = (path: string): string => stage.gateway.url + path;

  it('posts JSON and reads JSON', async () => {
    stage.respond(async (req, res) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      res.end(JSON.stringify({ path: req.url, got: await json(req) }));
    });
    expect(await client.postJson(url('/a%20b?c=d'), { hello: 'wörld' })).toEqual({
      path: '/a%20b?c=d',
      got: { hello: 'wörld' },
    });
  });

  it('uploads a stream of unknown length, whole', async () => {
    stage.respond(async (req, res) => {
      const body = await buffer(req);
      res.writeHead(200, { 'content-type': 'application/json' });
      res.end(
        JSON.stringify({ coding: req.headers['transfer-encoding'], bytes: body.length, hash: sha256(body) }),
      );
    });
    const chunks = Array.from({ length: 64 }, () => randomBytes(128 * 1024));
    expect(await client.upload(url('/upload'), Readable.from(chunks))).toEqual({
      coding: 'chunked',
      bytes: 8 * 1024 * 1024,
      hash: sha256(Buffer.concat(chunks)),
    });
  });

  it('downloads a compressed body as the backend compressed it', async () => {
    const body = Buffer.from('compress me '.repeat(500_000));
    stage.respond((req, res) => {
      expect(req.headers['accept-encoding']).toContain('gzip');
      res.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(body));
    });
    expect(sha256(await client.download(url('/download')))).toBe(sha256(body));
  });

  it('follows a redirect of the backend itself', async () => {
    stage.respond((req, res) => {
      if (req.url === '/old') res.writeHead(302, { location: '/new' }).end();
      else res.end('here');
    });
    expect((await client.download(url('/old'))).toString()).toBe('here');
  });

  it('keeps its connection over responses without a body, errors and rejections', async () => {
    for (const status of [204, 304, 404, 500, 200]) {
      stage.respond((_req, res) => void res.writeHead(status).end());
      expect(await client.status(url('/'))).toBe(status);
    }
    expect(await client.status(url('/%'))).toBe(400);
    expect(await client.status(url('/'))).toBe(200);
  });

  it('ends the request at the backend when it aborts', async () => {
    const aborting = new AbortController();
    const ended = new Promise<void>((resolve) => {
      stage.respond((_req, res) => {
        res.on('close', resolve);
        aborting.abort();
      });
    });
    await expect(client.abortable(url('/slow'), aborting.signal)).rejects.toThrow();
    await ended;
  });
});

describe('a stream of events, or a long poll', () => {
  it('gets its head and each event as soon as the backend writes it', async () => {
    const pool = new Pool(stage.gateway.url, { connections: 20 });
    const writers: ((event: number) => void)[] = [];
    stage.respond((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.flushHeaders();
      writers.push((event) => res.write(`data: ${event}\n\n`));
    });
    const streams = await Promise.all(
      Array.from({ length: 20 }, () => pool.request({ method: 'GET', path: '/events', headers: headers() })),
    );
    for (const event of [1, 2, 3]) {
      const arrived = streams.map(({ body }) => once(body, 'data'));
      for (const write of writers) write(event);
      for (const [data] of await Promise.all(arrived)) expect(String(data)).toBe(`data: ${event}\n\n`);
    }
    for (const { body } of streams) body.on('error', () => {}).destroy();
    await pool.destroy();
  });

  it('waits for its first byte, and the backend sees when the client gives up', async () => {
    const client = new AbortController();
    const gone = new Promise<void>((resolve) => {
      stage.respond((_req, res) => {
        res.on('close', resolve);
        client.abort();
      });
    });
    await expect(
      fetch(`${stage.gateway.url}/poll`, { headers: headers(), signal: client.signal }),
    ).rejects.toThrow();
    await gone;
  });
});
