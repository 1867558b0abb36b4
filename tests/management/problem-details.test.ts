import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createPublicServer, type PublicServer } from '../../src/server/public-server.ts';
import { testRequestIds } from '../support/request-ids.ts';
import { startManagement, type TestManagement } from './start-management.ts';

const PROBLEM = 'application/problem+json';

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

describe('with Accept: application/problem+json', () => {
  it.each([
    ['get', '/rate-limit/none', undefined, 404, 'plan_not_found'],
    ['get', '/rate-limit/none/below', undefined, 404, 'not_found'],
    ['put', '/rate-limit', undefined, 405, 'method_not_allowed'],
    ['post', '/consumer-api-key/create', {}, 400, 'invalid_body'],
    ['get', '/consumer-api-key?limit=x', undefined, 400, 'invalid_parameter'],
  ] as const)('%s %s has problem details', async (method, path, sent, status, code) => {
    const { body, headers } = await management.send(method, path, sent).set('Accept', PROBLEM).expect(status);
    expect(headers).toMatchObject({ 'content-type': PROBLEM, vary: 'Accept', 'cache-control': 'no-store' });
    expect(body).toMatchObject({ status, code, type: `urn:problem-type:tollgate:${code}` });
    expect([typeof body.title, typeof body.detail, body.error]).toEqual(['string', 'string', undefined]);
  });

  it('wrong credentials still have their challenge', async () => {
    const { headers } = await management.bare('get', '/rate-limit').set('Accept', PROBLEM).expect(401);
    expect(headers['www-authenticate']).toBe('Bearer realm="tollgate"');
    expect(headers['content-type']).toBe(PROBLEM);
  });

  it('a success is JSON as always', async () => {
    const { headers } = await management.send('get', '/rate-limit').set('Accept', PROBLEM).expect(200);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
  });
});

it('an error without an Accept header is plain JSON, and varies by Accept', async () => {
  const { body, headers } = await management.send('get', '/rate-limit/none').expect(404);
  expect(body).toEqual({ error: expect.any(String), code: 'plan_not_found' });
  expect(headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8', vary: 'Accept' });
});

describe('a request whose head is rejected', () => {
  const servers: PublicServer[] = [];
  afterAll(async () => {
    for (const server of servers) await server.close(1000);
  });

  async function rejectedAt(server: PublicServer, path: string): Promise<string> {
    servers.push(server);
    const { port } = await server.listen(0, '127.0.0.1');
    const socket = connect(port, '127.0.0.1').setEncoding('latin1');
    const lines = [`POST ${path} HTTP/1.1`, 'Host: a', 'Host: b', `Accept: ${PROBLEM}`, 'Content-Length: 0'];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    let received = '';
    socket.on('data', (text: string) => {
      received += text;
    });
    await once(socket, 'end');
    return received;
  }

  const requestIds = testRequestIds();
  const nobody = { handle: () => {}, upgrade: () => {}, endDrain: () => {} };

  it('has problem details on the port of management and below a reserved prefix', async () => {
    const { app } = management;
    const received = await rejectedAt(createPublicServer({ management: app, requestIds }), '/anything');
    expect(received).toMatch(
      /^HTTP\/1\.1 400 [\s\S]*Content-Type: application\/problem\+json\r\n[\s\S]*"detail":/,
    );
    const shared = createPublicServer({ management: app, proxied: nobody, requestIds });
    expect(await rejectedAt(shared, '/rate-limit/create')).toContain(PROBLEM);
  });

  it('has the one format of consumers elsewhere', async () => {
    const shared = createPublicServer({ management: management.app, proxied: nobody, requestIds });
    const received = await rejectedAt(shared, '/v1/orders');
    expect(received).toMatch(/^HTTP\/1\.1 400 [\s\S]*Content-Type: application\/json; charset=utf-8\r\n/);
    expect(received).not.toMatch(/vary/i);
  });
});
