import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ENDPOINTS } from '../../src/management/endpoints.ts';
import { isReserved } from '../../src/paths/path-matcher.ts';
import { startManagement, type TestManagement } from './start-management.ts';

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

describe('an unknown path', () => {
  it.each([
    '/',
    '/consumer-api-key/',
    '/consumer-api-key/create/',
    '/consumer-api-key/x/y',
    '/consumer-api-key/%zz/x',
    '/rate-limit/',
    '/rate-limit/create/x',
    '/rate-limit//x',
    '/api-keys',
    '/api-keys/Apply-Rate-Limit',
    '/api-keys/apply-rate-limit/',
    '/v1/orders',
  ])('is a JSON 404, with or without credentials: %s', async (path) => {
    for (const request of [management.bare('get', path), management.send('post', path, {})]) {
      const { body, headers } = await request.expect(404);
      const hint = path.endsWith('/') ? ' Paths have no slash at their end.' : '';
      expect(body).toEqual({ error: `There is no such endpoint.${hint}`, code: 'not_found' });
      expect(headers['content-type']).toBe('application/json; charset=utf-8');
    }
  });
});

describe('a path that resembles that of an endpoint', () => {
  it.each([
    ['/api-keys/key_01ARZ3NDEKTSV4RRFFQ69G5FAV', '/consumer-api-key/{consumerApiKeyId}'],
    ['/consumer-api-keys/key_01ARZ3NDEKTSV4RRFFQ69G5FAV', '/consumer-api-key'],
    ['/Consumer-Api-Key', '/consumer-api-key'],
  ])('is a 404 that names the one that was meant: %s', async (path, meant) => {
    const { body } = await management.send('get', path).expect(404);
    expect(body).toEqual({ error: `There is no such endpoint. Did you mean ${meant}?`, code: 'not_found' });
  });
});

describe('a known path with another method', () => {
  it.each([
    ['put', '/consumer-api-key/create', 'POST'],
    ['get', '/consumer-api-key/create', 'POST'],
    ['options', '/consumer-api-key/create', 'POST'],
    ['post', '/consumer-api-key', 'GET, HEAD'],
    ['post', '/consumer-api-key/x', 'DELETE, GET, HEAD, PATCH'],
    ['get', '/rate-limit/create', 'POST'],
    ['delete', '/rate-limit', 'GET, HEAD'],
    ['post', '/rate-limit/default', 'DELETE, GET, HEAD, PATCH, PUT'],
    ['get', '/api-keys/apply-rate-limit', 'POST'],
    ['head', '/api-keys/apply-rate-limit', 'POST'],
  ] as const)('is a 405 before credentials are looked at: %s %s', async (method, path, allow) => {
    const { headers, body } = await management.bare(method, path).expect(405);
    expect(headers.allow).toBe(allow);
    if (method !== 'head') expect(body.code).toBe('method_not_allowed');
  });

  it('says where something is created', async () => {
    for (const path of ['/consumer-api-key', '/rate-limit', '/tollgate/admin-token']) {
      const { body } = await management.bare('post', path).expect(405);
      expect(body.error).toBe(`This endpoint responds only to GET, HEAD. POST ${path}/create creates one.`);
    }
    const { body } = await management.bare('delete', '/rate-limit').expect(405);
    expect(body.error).toBe('This endpoint responds only to GET, HEAD.');
  });
});

describe('a path', () => {
  it.each(['/consumer-api-key/%zz', '/rate-limit/%', '/rate-limit/%ff', '/rate-limit/%c0%af'])(
    'that is not percent-encoded properly is a 400: %s',
    async (path) => {
      const { body } = await management.send('get', path).expect(400);
      expect(body).toEqual({ error: 'The path is not percent-encoded UTF-8.', code: 'bad_request' });
    },
  );

  it.each(ENDPOINTS.map(({ path }) => path))('of an endpoint is reserved: %s', (path) => {
    expect(isReserved(path)).toBe(true);
  });
});
