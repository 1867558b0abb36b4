import { createServer, type RequestListener, type Server } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { bodyOf, createManagementClient } from '../../src/client/management-client.ts';
import { ManagementFault } from '../../src/client/management-fault.ts';
import { ROOT_TOKEN, startManagement, type TestManagement } from '../management/start-management.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';

let management: TestManagement;
let managementUrl: string;
let server: Server;

beforeAll(async () => {
  management = await startManagement();
  managementUrl = `http://127.0.0.1:${await management.listen()}`;
});
afterAll(() => management?.stop());
afterEach(() => void server?.close());

async function listen(listener: RequestListener): Promise<string> {
  server = createServer(listener);
  return `http://127.0.0.1:${await listenOnLoopback(server)}`;
}

describe('the client of the management interface', () => {
  it('calls endpoints with paths, queries and bodies that they understand', async () => {
    const client = createManagementClient({ url: managementUrl, token: ROOT_TOKEN });
    const { id } = await bodyOf(
      client.POST('/consumer-api-key/create', { body: { name: 'typed', tags: ['a'] } }),
    );
    const { apiKeys } = await bodyOf(
      client.GET('/consumer-api-key', { params: { query: { limit: 1, tag: ['a'] } } }),
    );
    expect(apiKeys).toEqual([expect.objectContaining({ consumerApiKeyId: id, name: 'typed' })]);
    const path = { params: { path: { consumerApiKeyId: id } } };
    expect(await bodyOf(client.GET('/consumer-api-key/{consumerApiKeyId}', path))).toMatchObject({
      name: 'typed',
    });
  });

  it('throws what the response says of an error', async () => {
    const client = createManagementClient({ url: managementUrl, token: ROOT_TOKEN });
    const fault = await bodyOf(
      client.POST('/consumer-api-key/create', { body: { name: '', enabled: true } }),
    ).catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(ManagementFault);
    expect(fault).toMatchObject({
      status: 400,
      code: 'invalid_body',
      fields: [expect.objectContaining({ field: 'name' })],
      requestId: expect.stringMatching(/./),
    });
  });

  it('reads the stream of events, and ends it with its signal', async () => {
    const client = createManagementClient({ url: managementUrl, token: ROOT_TOKEN });
    const reading = new AbortController();
    const call = client.GET('/tollgate/events', { parseAs: 'stream', signal: reading.signal });
    const reader = (await bodyOf(call)).pipeThrough(new TextDecoderStream()).getReader();
    await bodyOf(client.POST('/consumer-api-key/create', { body: { name: 'streamed' } }));
    let received = '';
    while (!received.includes('"streamed"')) {
      const { done, value } = await reader.read();
      if (done) throw new Error(`The stream has ended: ${received}`);
      received += value;
    }
    reading.abort();
    await expect(reader.read()).rejects.toThrow('aborted');
  });

  it('ends a stream with its signal although garbage was collected meanwhile', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const client = createManagementClient({ url: managementUrl, token: ROOT_TOKEN });
    const reading = new AbortController();
    const call = client.GET('/tollgate/events', { parseAs: 'stream', signal: reading.signal });
    const reader = (await bodyOf(call)).getReader();
    await reader.read();
    // A collection runs to its end only when nothing is on the stack.
    for (let turns = 0; turns < 5; turns += 1) {
      await new Promise(setImmediate);
      collect();
    }
    reading.abort();
    await expect(reader.read()).rejects.toThrow('aborted');
  });

  it('follows no redirect, so that no token goes to another place', async () => {
    const authorizations: (string | undefined)[] = [];
    const url = await listen((req, res) => {
      authorizations.push(req.headers.authorization);
      res.writeHead(307, { location: '/rate-limit?again' }).end();
    });
    const client = createManagementClient({ url, token: ROOT_TOKEN });
    await expect(client.GET('/rate-limit')).rejects.toThrow();
    expect(authorizations).toEqual([`Bearer ${ROOT_TOKEN}`]);
  });

  it.each<readonly [number, Readonly<Record<string, string>>, string]>([
    [502, {}, '<h1>Bad Gateway</h1>'],
    [200, { 'content-type': 'application/json' }, '{"status":"ok"}'],
    [200, { 'content-type': 'text/html', 'x-request-id': 'of a proxy' }, '<h1>Welcome</h1>'],
  ])('says so where something else responds with %i', async (status, headers, body) => {
    const url = await listen((_req, res) => res.writeHead(status, headers).end(body));
    const client = createManagementClient({ url, token: ROOT_TOKEN });
    await expect(bodyOf(client.GET('/rate-limit'))).rejects.toMatchObject({
      status,
      code: '',
      message: expect.stringContaining("not one of Tollgate's management interface"),
    });
  });
});
