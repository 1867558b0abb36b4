import { describe, expect, it } from '@jest/globals';
import { isReserved, resembledManagementPath } from '../../src/paths/path-matcher.ts';

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

describe('resembledManagementPath', () => {
  it.each([
    ['/consumer-api-keys', '/consumer-api-key'],
    ['/consumer-api-keys/key_1', '/consumer-api-key'],
    ['/Consumer-Api-Key', '/consumer-api-key'],
    ['/rate-limits/gold', '/rate-limit'],
    ['/api-key', '/api-keys'],
    ['/api-keys/key_1', '/consumer-api-key/{consumerApiKeyId}'],
  ])('takes %s for %s', (path, meant) => {
    expect(resembledManagementPath(path)).toBe(meant);
  });

  it.each(['/', '', '/v1/rate-limits', '/keys', '/rate-limit', '/api-keys/apply-rate-limit', '/api-keysx'])(
    'takes %s for none',
    (path) => {
      expect(resembledManagementPath(path)).toBeUndefined();
    },
  );
});
