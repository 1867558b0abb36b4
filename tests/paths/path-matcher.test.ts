import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { PathMatcher } from '../../src/paths/path-matcher.ts';
import type { PathPattern } from '../../src/paths/path-pattern.ts';

function matcherOf(...paths: readonly string[]): PathMatcher<string> {
  return new PathMatcher(
    paths.map((path) => ({ pattern: { path }, value: path })),
    'insensitive',
  );
}

/** Every pattern after the other, each as a regular expression: slow, and easy to believe. */
function modelMatch(patterns: readonly PathPattern[], method: string, path: string): number | undefined {
  const index = patterns.findIndex(({ path: pattern, methods }) => {
    const source = pattern
      .replace(/[.+?^$()|[\]\\]/g, '\\$&')
      .replace(/\/\*\*$/, '(?:/.*)?')
      .replace(/(?<=.)\/$/, '/?')
      .replaceAll('%41', 'a')
      .replaceAll(/\/(?:\*(?!\))|\{[^}]+\})(?=\/|\(|$)/g, '/[^/]+');
    return (methods?.includes(method) ?? true) && new RegExp(`^${source}$`).test(path);
  });
  return index === -1 ? undefined : index;
}

describe('a path matcher', () => {
  it.each([
    ['/users/{id}', '/users/7', true],
    ['/users/{id}', '/users/7/', false],
    ['/users/{id}', '/users/', false],
    ['/users/{id}', '/users', false],
    ['/users/{id}', '/users/7/cart', false],
    ['/users/*/cart', '/users/7/cart', true],
    ['/users/*/cart', '/users//cart', false],
    ['/users/', '/users/', true],
    ['/users/', '/users', true],
    ['/users', '/Users', false],
    ['/a%20b', '/a%20b', true],
    ['/a%20b', '/a+b', false],
    ['/%61', '/a', true],
    ['/A', '/a', true],
    ['/%2A', '/*', true],
    ['/%2A', '/a', false],
    ['/{Id}', '/a', true],
    ['/a;b', '/a;b', true],
    ['/a;b', '/a', false],
    ['/caf%c3%89', '/caf%C3%A9', true],
    ['/v1/search/**', '/v1/search', true],
    ['/v1/search/**', '/v1/search/', true],
    ['/v1/search/**', '/v1/search/a//b/', true],
    ['/v1/search/**', '/v1/searches', false],
    ['/**', '/', true],
    ['/**', '*', false],
    ['/*', '/', false],
    ['/', '/', true],
    ['/', '', false],
  ])('%s against %s is %s', (pattern, path, isMatch) => {
    expect(matcherOf(pattern).match('GET', path)).toBe(isMatch ? pattern : undefined);
  });

  it('takes the first pattern that matches, however special the later ones are', () => {
    expect(matcherOf('/users/{id}', '/users/me').match('GET', '/users/me')).toBe('/users/{id}');
    expect(matcherOf('/users/me', '/users/{id}').match('GET', '/users/me')).toBe('/users/me');
    expect(matcherOf('/**', '/users/me').match('GET', '/users/me')).toBe('/**');
    expect(matcherOf('/users/{id}/x', '/users/**').match('GET', '/users/me')).toBe('/users/**');
    expect(matcherOf('/a/*/c', '/a/b/*').match('GET', '/a/b/d')).toBe('/a/b/*');
  });

  it('asks for the method only where the pattern names methods', () => {
    const matcher = new PathMatcher(
      [
        { pattern: { path: '/batch', methods: ['POST', 'PUT'] }, value: 'writes' },
        { pattern: { path: '/batch' }, value: 'all' },
        { pattern: { path: '/ping', methods: ['GET'] }, value: 'ping' },
        { pattern: { path: '/pong', methods: ['HEAD'] }, value: 'pong' },
      ],
      'insensitive',
    );
    expect(matcher.match('PUT', '/batch')).toBe('writes');
    expect(matcher.match('GET', '/batch')).toBe('all');
    expect(matcher.match('HEAD', '/ping')).toBe('ping');
    expect(matcher.match('GET', '/pong')).toBeUndefined();
    expect(matcher.match('get', '/ping')).toBeUndefined();
  });

  it('is not misled by names that objects have', () => {
    const matcher = matcherOf('/a/b');
    for (const path of ['/__proto__', '/constructor', '/a/toString']) {
      expect(matcher.match('GET', path)).toBeUndefined();
    }
  });

  it('says what is wrong with a malformed pattern', () => {
    expect(() => matcherOf('/ok', 'users')).toThrow('the pattern must begin with "/"');
    expect(
      () => new PathMatcher([{ pattern: { path: '/', methods: ['get'] }, value: 1 }], 'insensitive'),
    ).toThrow('the pattern must name methods in upper case');
  });

  it('agrees with regular expressions for any patterns and paths', () => {
    const literal = fc.constantFrom('a', 'b', 'ab', '$x', 'a.b', '%41');
    const patternPath = fc
      .tuple(
        fc.array(fc.oneof(literal, fc.constantFrom('*', '{id}')), { maxLength: 4 }),
        fc.constantFrom('', '/', '/**'),
      )
      .map(([segments, end]) => segments.map((segment) => `/${segment}`).join('') + end || '/');
    const methods = fc.subarray(['GET', 'POST', 'PUT'], { minLength: 1 });
    const pattern = fc.record({ path: patternPath, methods }, { requiredKeys: ['path'] });
    const path = fc
      .array(fc.oneof(literal, fc.constantFrom('', 'axb', 'A')), { maxLength: 5 })
      .map((segments) => `/${segments.join('/')}`);
    fc.assert(
      fc.property(
        fc.array(pattern, { maxLength: 12 }),
        fc.constantFrom('GET', 'POST'),
        path,
        (patterns, method, sent) => {
          const entries = patterns.map((each, index) => ({ pattern: each, value: index }));
          const model = modelMatch(patterns, method, sent);
          expect(new PathMatcher(entries, 'insensitive').match(method, sent)).toBe(model);
        },
      ),
      { numRuns: 5000 },
    );
  });

  it('gives the right result for 16 KB paths of thousands of segments', () => {
    const anyDepth = Array.from({ length: 100 }, (_, depth) => `${'/*'.repeat(depth + 1)}/end`);
    const matcher = matcherOf(...anyDepth, '/a/**');
    const hostile = '/a'.repeat(8192);
    expect(matcher.match('GET', hostile)).toBe('/a/**');
    expect(matcher.match('GET', hostile.replace('/a', '/b'))).toBeUndefined();
    expect(matcher.match('GET', '/'.repeat(16_384))).toBeUndefined();
    expect(matcher.match('GET', `/${'x'.repeat(16_384)}`)).toBeUndefined();
    expect(matcher.match('GET', `${'/x'.repeat(100)}/end`)).toBe(anyDepth[99]);
  });
});
