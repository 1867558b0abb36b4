import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readBearer } from '../../src/http/credentials/bearer.ts';
import { codePoint } from '../support/code-point.ts';

describe('readBearer', () => {
  it.each([undefined, '', 'Basic dXNlcjpwYXNz', 'Bearerish abc', 'abc', 'Beare abc', 'Digest x="y"'])(
    'finds no bearer credential in %j',
    (value) => {
      expect(readBearer(value)).toEqual({ kind: 'missing' });
    },
  );

  it.each([
    'Bearer',
    'Bearer ',
    'Bearer a b',
    'Bearer a,Bearer b',
    'Bearer =',
    'Bearer a=b',
    'Bearer\tabc',
    'Bearer é',
    'Bearer a\u0000',
    'Bearer a\n',
    'Bearer "abc"',
  ])('rejects the bearer scheme without a token68: %j', (value) => {
    expect(readBearer(value).kind).not.toBe('token');
  });

  it.each(['Bearer', 'bearer', 'BEARER', 'bEaReR', 'Bearer  '])('takes the scheme as %j', (scheme) => {
    expect(readBearer(`${scheme} tg_abc-._~+/==`)).toEqual({ kind: 'token', token: 'tg_abc-._~+/==' });
  });

  it('accepts any value, and returns exactly the token that was sent', () => {
    fc.assert(fc.property(fc.string({ unit: codePoint }), (value) => readBearer(value).kind !== undefined));
    const token = fc.stringMatching(/^[A-Za-z0-9\-._~+/]+=*$/);
    fc.assert(
      fc.property(token, (text) => {
        expect(readBearer(`Bearer ${text}`)).toEqual({ kind: 'token', token: text });
      }),
    );
  });
});
