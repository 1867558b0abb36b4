import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ENDPOINTS } from '../../src/management/endpoints.ts';
import { createPublicServer } from '../../src/server/public-server.ts';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { testRequestIds } from '../support/request-ids.ts';
import { until } from '../support/until.ts';
import { ROOT_TOKEN, startManagement, type TestManagement } from './start-management.ts';

const CREATE = '/consumer-api-key/create';
const JSON_TYPE = 'application/json';

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

/** Bytes as they are, whatever type they claim to have. */
function sendRaw(
  method: 'post' | 'put' | 'patch',
  path: string,
  contentType: string | undefined,
  bytes: string | Buffer,
) {
  const request = management.send(method, path).serialize((body: unknown) => body as string);
  if (contentType !== undefined) request.set('Content-Type', contentType);
  return request.send(bytes as string);
}

const withBody = ENDPOINTS.filter(({ body }) => body !== undefined).map(
  ({ bodyLimitBytes, method, path, body }) => ({
    limit: bodyLimitBytes ?? 64 * 1024,
    method: method as 'post' | 'put' | 'patch',
    path: path.replace(/\{\w+\}/, 'default'),
    fields: Object.keys(body?.properties ?? {}),
  }),
);

describe.each(withBody)('the body of $method $path', ({ limit, method, path, fields }) => {
  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/vnd.api+json',
    'application/json; charset=utf-16',
    'application/json; charset=iso-8859-1',
    'application',
    'multipart/form-data; boundary=x',
  ])('is rejected as %s', async (contentType) => {
    const { body } = await sendRaw(method, path, contentType, '{"name": "n"}').expect(415);
    expect(body.code).toBe('unsupported_media_type');
  });

  it.each(['gzip', 'br', 'deflate', 'gzip, identity', 'x'])(
    'is rejected with the coding %s',
    async (coding) => {
      const request = sendRaw(method, path, JSON_TYPE, '{"name": "n"}').set('Content-Encoding', coding);
      expect((await request.expect(415)).body.code).toBe('unsupported_media_type');
    },
  );

  it.each([
    ' ',
    '{',
    '{"name": }',
    "{'name': 'n'}",
    '{"name": "n"} x',
    'undefined',
    '{"name": NaN}',
    '\u0000',
  ])('is malformed as %j', async (text) => {
    const { body } = await sendRaw(method, path, JSON_TYPE, text).expect(400);
    expect(body).toEqual({ error: 'The request body is not well-formed JSON.', code: 'malformed_json' });
  });

  it('is called empty when it is, or is missing altogether', async () => {
    const empty = { error: 'The request body is empty: send a JSON object.', code: 'malformed_json' };
    expect((await sendRaw(method, path, JSON_TYPE, '').expect(400)).body).toEqual(empty);
    expect((await management.send(method, path).type('json').expect(400)).body).toEqual(empty);
    expect((await management.send(method, path).expect(400)).body).toEqual(empty);
    expect((await management.send(method, path).set('Content-Length', '0').expect(400)).body).toEqual(empty);
  });

  it('is malformed when it is not UTF-8', async () => {
    const bytes = Buffer.from([...Buffer.from('{"name": "'), 0xff, 0xc3, ...Buffer.from('"}')]);
    expect((await sendRaw(method, path, JSON_TYPE, bytes).expect(400)).body.code).toBe('malformed_json');
  });

  it.each(['null', 'true', '1', '"text"', '[]', '[{"name": "n"}]'])(
    'must be an object, not %s',
    async (text) => {
      const { body } = await sendRaw(method, path, JSON_TYPE, text).expect(400);
      expect(body).toMatchObject({
        code: 'invalid_body',
        errors: [{ field: 'body', message: 'must be a JSON object' }],
      });
    },
  );

  it.each([
    ['{"name": 1e400}', 'name'],
    ['{"metadata": {"a": [0, 12345678901234567890]}}', 'metadata.a[1]'],
    ['{"metadata": {"a": 0.12345678901234567890}}', 'metadata.a'],
    ['-1e400', 'body'],
  ])('may not have a number that would be stored as another one: %s', async (text, field) => {
    const { body } = await sendRaw(method, path, JSON_TYPE, text).expect(400);
    expect(body).toMatchObject({ code: 'invalid_body', errors: [{ field }] });
    expect(body.errors[0].message).toMatch(/^must be a number that a double holds exactly/);
  });

  it('is rejected above its limit, announced or in chunks', async () => {
    const large = JSON.stringify({ name: 'x'.repeat(limit) });
    expect((await sendRaw(method, path, JSON_TYPE, large).expect(413)).body.code).toBe('body_too_large');
    const chunked = management.send(method, path).type('json');
    chunked.write(large);
    expect((await chunked.expect(413)).body.code).toBe('body_too_large');
  });

  it('never leads to a failure of ours, whatever JSON it holds', async () => {
    const field = fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...fields) },
      fc.constantFrom('__proto__', 'constructor', 'toString', ''),
    );
    const text = fc.constantFrom('default', 'hour', 'P1M', '\u0000', '\ud800', '2030-01-01T00:00:00Z');
    const value = fc.oneof(fc.jsonValue({ maxDepth: 2 }), text, fc.integer(), fc.boolean());
    const json = fc.oneof(
      { weight: 4, arbitrary: fc.array(fc.tuple(field, value), { maxLength: 6 }).map(objectText) },
      fc.json(),
    );
    await fc.assert(
      fc.asyncProperty(json, async (body) => {
        const { status } = await sendRaw(method, path, JSON_TYPE, body);
        expect(status).toBeLessThan(500);
      }),
      { numRuns: 60 },
    );
  });
});

describe('a JSON body', () => {
  it.each([
    'application/json',
    'Application/JSON',
    'application/json;charset=UTF-8',
    'application/json; charset="utf-8"',
    'application/json; charset=utf8',
  ])('is read as %s', async (contentType) => {
    await sendRaw('post', CREATE, contentType, '{"name": "n"}').expect(201);
  });

  it('is read up to 64 KiB, and with the coding identity', async () => {
    const full = '{"name": "n"}'.padEnd(64 * 1024);
    await sendRaw('post', CREATE, JSON_TYPE, full).set('Content-Encoding', 'identity').expect(201);
  });

  it('is no failure of ours when it is nested without end', async () => {
    const deep = (field: string) => `{"name": "n", "${field}": ${'['.repeat(30_000)}${']'.repeat(30_000)}}`;
    for (const field of ['deep', 'metadata']) {
      const { body } = await sendRaw('post', CREATE, JSON_TYPE, deep(field)).expect(400);
      expect(body).toEqual({
        error: 'The request body has more than 128 levels of objects and lists.',
        code: 'malformed_json',
      });
    }
  });

  it('may hold any brackets in its texts', async () => {
    const key = { name: `a "name" \\ ${'[{'.repeat(20)}`, metadata: { a: '[{"'.repeat(200) } };
    const { body } = await management.send('post', CREATE, key).expect(201);
    const { body: shown } = await management.send('get', `/consumer-api-key/${body.id}`).expect(200);
    expect(shown).toMatchObject(key);
  });

  it('keeps each number of metadata as it was sent', async () => {
    const text = '{"a":0.1,"b":9007199254740992,"c":1e21,"d":1.7976931348623157e308,"e":-5e-324,"f":[1.50]}';
    const { body } = await sendRaw('post', CREATE, JSON_TYPE, `{"name": "n", "metadata": ${text}}`).expect(
      201,
    );
    const shown = await management.send('get', `/consumer-api-key/${body.id}`).expect(200);
    expect(shown.body.metadata).toEqual(JSON.parse(text));
  });

  it('has metadata of at most 100 levels', async () => {
    const metadata = (levels: number) => ({ a: JSON.parse('['.repeat(levels - 1) + ']'.repeat(levels - 1)) });
    const key = { name: 'n', externalId: 'nested', metadata: metadata(100) };
    const { id } = (await management.send('post', CREATE, key).expect(201)).body;
    await management.send('patch', `/consumer-api-key/${id}`, { metadata: metadata(99) }).expect(200);
    await management.send('post', `/consumer-api-key/${id}/rotate`, { graceSeconds: 0 }).expect(200);
    await management.send('get', '/tollgate/config?format=yaml').expect(200);
    const { body } = await management.send('post', CREATE, { ...key, metadata: metadata(101) }).expect(400);
    expect(body.errors).toEqual([
      {
        field: 'metadata',
        message: 'must be a JSON object of at most 50 entries, 8192 bytes and 100 levels, or null',
      },
    ]);
  });

  it('has metadata of at most 8 KiB with the numbers written out', async () => {
    const create = (values: string) =>
      sendRaw('post', CREATE, JSON_TYPE, `{"name": "n", "metadata": {"a": [${values}]}}`);
    const list = (value: string, count: number) => Array.from({ length: count }, () => value).join(',');
    for (const number of ['1e308', '-1e-300']) {
      await create(list(number, 26)).expect(201);
      const { body } = await create(list(number, 1000)).expect(400);
      expect(body.errors).toEqual([expect.objectContaining({ field: 'metadata' })]);
    }
    await create(list('"\\"1e+308"', 600)).expect(201);
  });

  it('is not acted upon when its end arrives after it was rejected for its rate', async () => {
    const { app } = management;
    const requestIds = testRequestIds();
    const uploadRate = { bytesPerSecond: 1000, windowMs: 100 };
    const server = createPublicServer({ management: app, requestIds, uploadRate });
    const { port } = await server.listen(0, '127.0.0.1');
    const body = '{"name": "too late"}';
    const client = await RawPeer.connect(port, true);
    client.send(
      `POST ${CREATE} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ROOT_TOKEN}\r\nContent-Type: ${JSON_TYPE}\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    expect(await client.until((text) => text.endsWith('}'))).toMatch(/^HTTP\/1\.1 408 /);
    client.send(body);
    client.end();
    await server.close(30_000);
    const list = await management.send('get', '/consumer-api-key?q=too%20late').expect(200);
    expect(list.body.apiKeys).toEqual([]);
  });

  it.each([
    ['was deleted', 'delete', undefined, 401],
    ['may do less', 'patch', { scopes: ['keys:read'] }, 403],
  ] as const)(
    'is not acted upon when it arrives after its admin token %s',
    async (_what, method, change, status) => {
      const { adminTokenId, secret } = await management.createToken({ scopes: ['keys:write'] });
      const server = createPublicServer({ management: management.app, requestIds: testRequestIds() });
      const { port } = await server.listen(0, '127.0.0.1');
      const body = '{"name": "held back"}';
      const client = await RawPeer.connect(port);
      client.send(
        `POST ${CREATE} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${secret}\r\nContent-Type: ${JSON_TYPE}\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`,
      );
      await client.until((text) => text.includes('100 Continue'));
      await management.send(method, `/tollgate/admin-token/${adminTokenId}`, change).expect(200);
      client.send(body);
      expect(await client.ended()).toContain(`HTTP/1.1 ${status} `);
      await server.close(30_000);
      const list = await management.send('get', '/consumer-api-key?q=held%20back').expect(200);
      expect(list.body.apiKeys).toEqual([]);
    },
  );

  it('is not read by endpoints that take none', async () => {
    const { id } = await management.createKey();
    await management.send('delete', `/consumer-api-key/${id}`).type('text').send('x').expect(200);
  });
});

/** Written by hand, so that a field may come twice and `__proto__` is an ordinary one. */
function objectText(entries: readonly (readonly [string, unknown])[]): string {
  return `{${entries.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`;
}

describe('large bodies of several requests', () => {
  const BYTES = 8 * 1024 * 1024;

  it('have 32 MiB together: 503 with Retry-After beyond it, and small ones get through', async () => {
    const port = await management.listen();
    const clients: RawPeer[] = [];
    try {
      // All but the last byte.
      const body = `{"config": {}, "owner": "large"`.padEnd(BYTES - 1);
      const head = `Host: a\r\nAuthorization: Bearer ${ROOT_TOKEN}\r\nContent-Type: application/json\r\nContent-Length: ${BYTES}`;
      for (let client = 0; client < 5; client += 1) {
        const peer = await RawPeer.connect(port);
        clients.push(peer);
        peer.send(`POST /tollgate/config/diff HTTP/1.1\r\n${head}\r\n\r\n${body}`);
      }
      await until(() => clients.some(({ text }) => text.includes('"overloaded"')));
      const rejected = clients.filter(({ text }) => text !== '');
      expect(rejected).toHaveLength(1);
      expect(rejected[0]?.text).toMatch(
        /^HTTP\/1\.1 503 .*\r\nRetry-After: 1\r\n.*\r\nConnection: close\r\n/is,
      );
      await management.send('post', CREATE, { name: 'small' }).expect(201);
      for (const client of clients) {
        if (rejected.includes(client)) continue;
        client.send('}');
        expect(await client.until((text) => text.includes('"summary"'))).toMatch(/^HTTP\/1\.1 200 /);
      }
    } finally {
      for (const client of clients) client.destroy();
    }
  });
});
