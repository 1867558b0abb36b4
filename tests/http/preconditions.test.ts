import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { readPreconditions } from '../../src/http/preconditions.ts';

function conditionOf(headers: Readonly<Record<string, string>>) {
  const req = new IncomingMessage(new Socket());
  Object.assign(req.headers, headers);
  return readPreconditions(req);
}

describe('If-Match', () => {
  it.each([
    ['"a"', '"a"', true],
    ['"a"', '"b"', false],
    ['"b", "a"', '"a"', true],
    [' ,"b" ,, "a" , ', '"a"', true],
    ['W/"a"', '"a"', false],
    ['W/"a", "a"', '"a"', true],
    ['"A"', '"a"', false],
    ['"a,b"', '"a,b"', true],
    ['""', '""', true],
    ['*', '"a"', true],
    [' * ', '"a"', true],
    ['*', undefined, false],
    ['"a"', undefined, false],
  ])('of %j holds for the tag %j: %j', (value, etag, holds) => {
    expect(conditionOf({ 'if-match': value })?.(etag)).toBe(holds);
  });

  it.each(['', 'a', '"a', '"a" "b"', '*, "a"', '"a", *', 'w/"a"', 'W/ "a"', ',', '"\t"', '""""'])(
    'of %j is a bad request',
    (value) => {
      expect(() => conditionOf({ 'if-match': value })).toThrow('If-Match must be * or a list');
    },
  );
});

describe('If-None-Match', () => {
  it.each([
    ['*', undefined, true],
    ['*', '"a"', false],
    ['"a"', '"a"', false],
    ['W/"a"', '"a"', false],
    ['"b", W/"c"', '"a"', true],
    ['"a"', undefined, true],
  ])('of %j holds for the tag %j: %j', (value, etag, holds) => {
    expect(conditionOf({ 'if-none-match': value })?.(etag)).toBe(holds);
  });
});

it('a request without If-Match and If-None-Match has no condition', () => {
  expect(conditionOf({ host: 'a' })).toBeUndefined();
});

it('a condition of both headers holds only where both do', () => {
  const condition = conditionOf({ 'if-match': '"a", "b"', 'if-none-match': '"b"' });
  expect([condition?.('"a"'), condition?.('"b"')]).toEqual([true, false]);
});

it('the longest If-Match that a request can have is read in one pass', () => {
  expect(() => conditionOf({ 'if-match': `${'"a",'.repeat(4000)}x` })).toThrow('If-Match');
  expect(() => conditionOf({ 'if-match': `"a"${' ,'.repeat(8000)}x` })).toThrow('If-Match');
});
