import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { PathPattern } from '../../src/paths/path-pattern.ts';
import { canonicalPath, otherReadings, type PathCase } from '../../src/paths/path-readings.ts';
import { limitsOfPlan } from '../../src/plans/limits-of-plan.ts';

describe('the canonical path', () => {
  it.each([
    ['/v1/%73earch', '/v1/search'],
    ['/v1/search%2Fx', '/v1/search/x'],
    ['//v1///search', '/v1/search'],
    ['/v1/search;a=b/x;c', '/v1/search/x'],
    ['/v1/search%3Ba/x', '/v1/search/x'],
    ['/v1/;a/search', '/v1/search'],
    ['/v1/search/', '/v1/search'],
    ['/V1/Search', '/v1/search'],
    ['/V1/%53EARCH;A/', '/v1/search'],
    ['/', '/'],
    ['//', '/'],
    ['/;a', '/'],
    ['/a%20b%c3%a9', '/a%20b%C3%A9'],
    ['/caf%C3%89', '/caf%C3%A9'],
    ['/%E2%84%AA', '/k'],
    ['/%ff%C3', '/%FF%C3'],
    ['/%2573', '/%2573'],
    ['/a%3Fb%23c', '/a%3Fb%23c'],
    ['/a+b', '/a+b'],
  ])('of %s is %s', (path, canonical) => {
    expect(canonicalPath(path, 'insensitive')).toBe(canonical);
    expect(canonicalPath(canonical, 'insensitive')).toBe(canonical);
  });

  it('keeps the case where case matters', () => {
    expect(canonicalPath('/V1/%53earch/', 'sensitive')).toBe('/V1/Search');
    expect(canonicalPath('/caf%C3%89', 'sensitive')).toBe('/caf%C3%89');
  });
});

describe('the other readings of a path', () => {
  it.each(['/', '/v1/search', '/v1/a.b,c=d&e/~x', '/*'])('are none for the plain path %s', (path) => {
    expect(otherReadings(path, 'insensitive')).toHaveLength(0);
    expect(otherReadings(path, 'insensitive')).toBe(otherReadings('/', 'sensitive'));
  });

  it('are none for capitals where case matters', () => {
    expect(otherReadings('/V1/Search', 'sensitive')).toHaveLength(0);
  });

  it('begin with the canonical path, and are at most seven of any path', () => {
    const piece = fc.constantFrom(
      'a',
      'B',
      '/',
      ';',
      '%2f',
      '%3b',
      '%25',
      '%61',
      '%3F',
      '%C3%89',
      '%ff',
      '.',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const path = `/${pieces.join('')}`;
        const readings = otherReadings(path, 'insensitive');
        const canonical = canonicalPath(path, 'insensitive');
        if (canonical !== path) expect(readings[0]).toBe(canonical);
        expect(readings.length).toBeLessThanOrEqual(7);
        expect(new Set([path, ...readings]).size).toBe(readings.length + 1);
      }),
      { numRuns: 2000 },
    );
  });
});

/** A path, and how a backend may be asked for the same. */
interface Spelt {
  readonly path: string;
  readonly spelling: string;
}

const SEGMENT = fc.constantFrom('v1', 'search', 'batch', 'a', 'b', '7');
const hex = (text: string) => `%${text.charCodeAt(0).toString(16).padStart(2, '0')}`;

/** Spellings that keep the meaning of a path for some backend. */
function spellings(pathCase: PathCase): fc.Arbitrary<Spelt> {
  const character = fc.record({
    isEncoded: fc.boolean(),
    inCapitals: fc.boolean(),
    hexInCapitals: fc.boolean(),
  });
  const segment = SEGMENT.chain((text) =>
    fc.tuple(
      fc.constant(text),
      fc.array(character, { minLength: text.length, maxLength: text.length }),
      fc.constantFrom('', ';', ';a=b', ';a=b;c', '%3bx'),
      fc.constantFrom('/', '//', '///', '%2F', '%2f/', '/;x/'),
    ),
  );
  return fc
    .tuple(fc.array(segment, { minLength: 1, maxLength: 4 }), fc.constantFrom('', '/', '//'))
    .map(([segments, end]) => ({
      path: segments.map(([text]) => `/${text}`).join(''),
      spelling:
        segments
          .map(([text, how, parameter, slash], index) => {
            const written = Array.from(text, (letter, at) => {
              const { isEncoded = false, inCapitals = false, hexInCapitals = false } = how[at] ?? {};
              const cased = inCapitals && pathCase === 'insensitive' ? letter.toUpperCase() : letter;
              const encoded = hexInCapitals ? hex(cased).toUpperCase() : hex(cased);
              return isEncoded ? encoded : cased;
            }).join('');
            return (index === 0 ? '/' : slash) + written + parameter;
          })
          .join('') + end,
    }));
}

const PATTERN_PATH = fc
  .tuple(
    fc.array(fc.oneof(SEGMENT, fc.constantFrom('*', '{id}')), { minLength: 1, maxLength: 4 }),
    fc.constantFrom('', '/**'),
  )
  .map(([segments, end]) => segments.map((each) => `/${each}`).join('') + end);
const METHODS = fc.constantFrom<readonly string[] | undefined>(undefined, ['GET'], ['POST'], ['GET', 'PUT']);
const PATTERN = fc
  .record({ path: PATTERN_PATH, methods: METHODS })
  .map(({ path, methods }): PathPattern => (methods === undefined ? { path } : { path, methods }));

describe('another spelling of a path', () => {
  it.each(['insensitive', 'sensitive'] as const)(
    'leaves no limit and no cost, with the case %s',
    (pathCase) => {
      const limit = fc.tuple(
        fc.array(PATTERN, { minLength: 1, maxLength: 3 }),
        fc.constantFrom('enforce' as const, 'shadow' as const),
      );
      const cost = fc.tuple(PATTERN, fc.constantFrom(0, 1, 2, 25, 'response' as const));
      fc.assert(
        fc.property(
          spellings(pathCase),
          fc.constantFrom('GET', 'HEAD', 'POST'),
          fc.array(limit, { maxLength: 4 }),
          fc.array(cost, { maxLength: 6 }),
          ({ path, spelling }, method, limits, costs) => {
            const additionalLimits = limits.map(([match, mode], index) => ({
              ...{ limitId: `l${index}`, limit: 1, period: 'hour' },
              ...{ match, mode },
            }));
            const plan = {
              ...{ limit: 1, period: 'day', additionalLimits },
              costs: costs.map(([pattern, units]) => ({ ...pattern, cost: units, reserve: 3 })),
            };
            const compiled = limitsOfPlan(plan, {}, pathCase);
            const others = otherReadings(spelling, pathCase);
            const plain = compiled.limitsFor(method, path, []);
            const spelt = compiled.limitsFor(method, spelling, others);
            expect(spelt).toEqual(expect.arrayContaining([...plain]));
            const asSent = compiled.costOf(method, path, []);
            const charged = compiled.costOf(method, spelling, others);
            expect(charged.units).toBeGreaterThanOrEqual(asSent.units);
            expect(charged.isReported || !asSent.isReported).toBe(true);
          },
        ),
        { numRuns: 1000 },
      );
    },
  );

  it('by HEAD leaves no limit and no cost of GET', () => {
    const match = [{ methods: ['GET'], path: '/v1/items/{id}' }];
    const plan = {
      ...{ limit: 1, period: 'day', costs: [{ ...match[0], path: '/v1/items/{id}', cost: 5 }] },
      additionalLimits: [{ limitId: 'items', limit: 1, period: 'hour', match }],
    };
    const compiled = limitsOfPlan(plan, {}, 'insensitive');
    expect(compiled.limitsFor('HEAD', '/v1/items/7', [])).toEqual(
      compiled.limitsFor('GET', '/v1/items/7', []),
    );
    expect(compiled.costOf('HEAD', '/v1/items/7', []).units).toBe(5);
    expect(compiled.limitsFor('POST', '/v1/items/7', [])).toHaveLength(1);
  });
});
