import { describe, expect, it } from '@jest/globals';
import { canonicalHint, tryRequest } from '../../src/console/pages/plans/editor/tried-request.ts';
import type { PlanTerms } from '../../src/console/pages/plans/plan-types.ts';

const TERMS: PlanTerms = {
  description: '',
  limit: 100,
  period: 'hour',
  additionalLimits: [
    { limitId: 'burst', limit: 10, period: 'second' },
    { limitId: 'search', limit: 5, period: 'hour', match: [{ methods: ['GET'], path: '/v1/search/**' }] },
  ],
  costs: [
    { path: '/v1/search/big', cost: 25 },
    { path: '/v1/ping', cost: 0 },
    { path: '/v1/chat', cost: 'response', reserve: 7 },
  ],
};

describe('a request that is tried in the editor of a plan', () => {
  it.each([
    ['GET', '/v1/search', ['main', 'burst', 'search'], 1],
    ['HEAD', '/V1/%73earch/big?x', ['main', 'burst', 'search'], 25],
    ['POST', '/v1/search/big/', ['main', 'burst'], 25],
    ['GET', '/v1/ping', ['main', 'burst'], 0],
    ['GET', '/v1/ping/', ['main', 'burst'], 1],
    ['GET', '/v1/chat', ['main', 'burst'], 7],
  ])('%s %s has the limits %j and the cost %i', (method, path, limitIds, units) => {
    expect(tryRequest(TERMS, { method, path }, 'insensitive')).toMatchObject({ limitIds, cost: { units } });
  });

  it('is read in more ways than one where its path is not plain', () => {
    const readings = (path: string) =>
      tryRequest(TERMS, { method: 'GET', path }, 'insensitive')?.otherReadings;
    expect(readings('/v1/search')).toEqual([]);
    expect(readings('/V1//search;x')).toEqual(['/v1/search']);
  });

  it('is decided only when it and the patterns are valid', () => {
    const request = { method: 'GET', path: '/a' };
    for (const path of ['', 'a', '/a b', '/%zz']) {
      expect(tryRequest(TERMS, { ...request, path }, 'insensitive')).toBeUndefined();
    }
    const terms = { ...TERMS, costs: [{ path: 'x', cost: 1 }] };
    expect(tryRequest(terms, request, 'insensitive')).toBeUndefined();
  });
});

describe('the hint beside a pattern', () => {
  it.each([
    ['/v1/search', undefined],
    ['v1', undefined],
    ['/V1/%73earch', 'Is saved as /v1/search'],
    ['/v1/search;x', 'Write /v1/search'],
    ['/v1//search', 'Write /v1/search'],
    ['/v1/%2e%2e', 'No request can have this path'],
  ])('of %s is %s', (path, hint) => {
    expect(canonicalHint(path, 'insensitive')).toBe(hint);
  });

  it('leaves capitals where case matters', () => {
    expect(canonicalHint('/V1', 'sensitive')).toBeUndefined();
  });
});
