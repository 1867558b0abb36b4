import { describe, expect, it } from '@jest/globals';
import { isReserved } from '../../src/server/reserved-paths.ts';

describe('isReserved', () => {
  it.each([
    '/consumer-api-key',
    '/consumer-api-key/',
    '/consumer-api-key/create',
    '/rate-limit/x/y',
    '/api-keys',
    '/tollgate',
    '/tollgate/whoami',
  ])('reserves %s', (path) => {
    expect(isReserved(path)).toBe(true);
  });

  it.each([
    '/',
    '/v1/rate-limit',
    '/rate-limits',
    '/tollgates',
    '/Rate-Limit',
    '/api-keysx/y',
    '//api-keys',
    '/api-keys%2Fx',
    '',
  ])('leaves %s to the backend', (path) => {
    expect(isReserved(path)).toBe(false);
  });
});
