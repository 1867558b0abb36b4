import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ENDPOINTS } from '../../src/management/endpoints.ts';
import { OTHER_ROOT_TOKEN, ROOT_TOKEN, startManagement, type TestManagement } from './start-management.ts';

const CHALLENGE = 'Bearer realm="tollgate"';
const routes = ENDPOINTS.map(({ method, path }) => [method, path.replace(/\{\w+\}/, 'default')] as const);

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

describe.each(routes)('%s %s', (method, path) => {
  it.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['Basic', `Basic ${Buffer.from(`root:${ROOT_TOKEN}`).toString('base64')}`],
    ['the token without a scheme', ROOT_TOKEN],
  ])('misses a root token in %s', async (_what, authorization) => {
    const request = management.bare(method, path);
    const { body, headers } = await (authorization === undefined
      ? request
      : request.set('Authorization', authorization)
    ).expect(401);
    expect(body.code).toBe('missing_root_token');
    expect(headers['www-authenticate']).toBe(CHALLENGE);
    expect(headers['cache-control']).toBe('no-store');
  });

  it.each([
    ['an empty token', 'Bearer'],
    ['another token', `Bearer ${ROOT_TOKEN.replace('the', 'not')}`],
    ['a part of the token', `Bearer ${ROOT_TOKEN.slice(0, -1)}`],
    ['two tokens', `Bearer ${ROOT_TOKEN}, Bearer ${ROOT_TOKEN}`],
    ['a token in another case', `Bearer ${ROOT_TOKEN.toUpperCase()}`],
  ])('rejects %s', async (_what, authorization) => {
    const { body, headers } = await management
      .bare(method, path)
      .set('Authorization', authorization)
      .expect(401);
    expect(body.code).toBe('invalid_root_token');
    expect(headers['www-authenticate']).toBe(`${CHALLENGE}, error="invalid_token"`);
  });

  it('rejects the secret of a consumer key', async () => {
    const { secret } = await management.createKey();
    const { body } = await management.bare(method, path).set('Authorization', `Bearer ${secret}`).expect(401);
    expect(body.code).toBe('invalid_root_token');
  });
});

describe('the root token', () => {
  it.each([
    `bearer ${ROOT_TOKEN}`,
    `BEARER ${ROOT_TOKEN}`,
    `Bearer   ${ROOT_TOKEN}`,
    `Bearer ${OTHER_ROOT_TOKEN}`,
  ])('is accepted as %s', async (authorization) => {
    await management.bare('get', '/rate-limit').set('Authorization', authorization).expect(200);
  });

  it('is not read from the query', async () => {
    await management.bare('get', `/rate-limit?access_token=${ROOT_TOKEN}&key=${ROOT_TOKEN}`).expect(401);
  });

  it('is rejected in two lines, even when both are right', async () => {
    const line = `Bearer ${ROOT_TOKEN}`;
    const { body } = await management
      .bare('get', '/rate-limit')
      // superagent passes a list on as two header lines.
      .set({ Authorization: [line, line] } as unknown as Record<string, string>)
      .expect(400);
    expect(body.code).toBe('bad_request');
  });

  it('is required before the body is read', async () => {
    await management.bare('post', '/rate-limit/create').type('text').send('{').expect(401);
  });
});
