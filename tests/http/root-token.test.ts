import { describe, expect, it } from '@jest/globals';
import { RootTokens } from '../../src/http/root-token.ts';

const FIRST = 'first-root-token-of-32-characters';
const SECOND = 'second-root-token-of-32-characters';
const tokens = new RootTokens([FIRST, SECOND]);

describe('RootTokens', () => {
  it.each([FIRST, SECOND])('accepts each of the tokens: %s', (token) => {
    expect(() => tokens.authenticate([`Bearer ${token}`])).not.toThrow();
  });

  it.each([
    ['no header', []],
    ['another scheme', [`Basic ${FIRST}`]],
  ])('misses a credential in %s', (_case, lines) => {
    expect(() => tokens.authenticate(lines)).toThrow(expect.objectContaining({ code: 'missing_root_token' }));
  });

  it.each(['Bearer', `Bearer ${FIRST}x`, `Bearer ${FIRST.slice(0, -1)}`, `Bearer ${FIRST} ${SECOND}`])(
    'rejects %j',
    (line) => {
      expect(() => tokens.authenticate([line])).toThrow(
        expect.objectContaining({ code: 'invalid_root_token' }),
      );
    },
  );

  it('rejects two lines, even when both are right', () => {
    const line = `Bearer ${FIRST}`;
    expect(() => tokens.authenticate([line, line])).toThrow(expect.objectContaining({ code: 'bad_request' }));
  });

  it('accepts nothing when there are no tokens', () => {
    expect(() => new RootTokens([]).authenticate([`Bearer ${FIRST}`])).toThrow(
      expect.objectContaining({ code: 'invalid_root_token' }),
    );
  });
});
