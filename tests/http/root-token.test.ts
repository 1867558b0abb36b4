import { describe, expect, it } from '@jest/globals';
import { RootTokens } from '../../src/http/credentials/root-token.ts';

const FIRST = 'first-root-token-of-32-characters';
const SECOND = 'second-root-token-of-32-characters';
const tokens = new RootTokens([FIRST, SECOND]);

describe('RootTokens', () => {
  it.each([FIRST, SECOND])('includes each of the tokens: %s', (token) => {
    expect(tokens.includes(token)).toBe(true);
  });

  it.each(['', `${FIRST}x`, FIRST.slice(0, -1), FIRST.toUpperCase(), FIRST + SECOND])(
    'does not include %j',
    (text) => {
      expect(tokens.includes(text)).toBe(false);
    },
  );

  it('includes nothing when there are no tokens', () => {
    expect(new RootTokens([]).includes(FIRST)).toBe(false);
  });
});
