import { describe, expect, it } from '@jest/globals';
import {
  ANY_SEGMENT,
  methodsFault,
  parsePathPattern,
  pathPatternFault,
} from '../../src/paths/path-pattern.ts';

describe('a path pattern', () => {
  it.each(['/', '/users', '/users/', '/users/*', '/users/{id}/cart', '/v1/**', '/**', '/a%20b/~:@!$&'])(
    'may be %s',
    (path) => {
      expect(pathPatternFault(path)).toBeUndefined();
      expect(() => parsePathPattern(path, 'insensitive')).not.toThrow();
    },
  );

  it.each([
    ['', 'must begin with "/"'],
    ['users', 'must begin with "/"'],
    ['*', 'must begin with "/"'],
    [`/${'a'.repeat(256)}`, 'must have at most 256 characters'],
    ['/users?id=1', 'must not have a query: only the path is matched'],
    ['/users#top', 'must not have a fragment'],
    ['/caf\u00e9', 'must be visible ASCII: percent-encode everything else, as requests do'],
    ['/a b', 'must be visible ASCII: percent-encode everything else, as requests do'],
    ['/100%', 'has a "%" that is not followed by two hexadecimal digits'],
    ['/a/../b', 'has a "." or ".." segment, which no request can have'],
    ['/**/users', 'has "**" before its end: only the last segment may be "**"'],
    ['/user*', 'has a "*" inside a segment: it stands for a whole segment'],
    ['/a/b**', 'has a "*" inside a segment: it stands for a whole segment'],
    ['/report.{format}', 'has a "{" or "}" inside a segment: "{name}" stands for a whole segment'],
    ['/users/{}', 'has a "{" or "}" inside a segment: "{name}" stands for a whole segment'],
    ['/users/{id', 'has a "{" or "}" inside a segment: "{name}" stands for a whole segment'],
  ])('%j is rejected with the reason', (path, fault) => {
    expect(pathPatternFault(path)).toBe(fault);
    expect(() => parsePathPattern(path, 'insensitive')).toThrow(`the pattern ${fault}`);
  });

  it('is taken apart into literal segments, single wildcards and the rest', () => {
    expect(parsePathPattern('/v1/{user}/*/x/**', 'insensitive')).toEqual({
      segments: ['v1', ANY_SEGMENT, ANY_SEGMENT, 'x'],
      hasRest: true,
      hasSlash: false,
    });
    expect(parsePathPattern('/users/', 'insensitive')).toEqual({
      segments: ['users'],
      hasRest: false,
      hasSlash: true,
    });
    expect(parsePathPattern('/', 'insensitive')).toEqual({ segments: [''], hasRest: false, hasSlash: false });
  });

  it('names methods in upper case, at least one', () => {
    expect(methodsFault(['GET', 'M-SEARCH'])).toBeUndefined();
    expect(methodsFault([])).toBe('must name at least one method, or leave "methods" out for all');
    for (const wrong of ['get', 'GET ', '', 'G\u00c9T'])
      expect(methodsFault(['GET', wrong])).toBe('must name methods in upper case, like "GET"');
  });
});
