import { describe, expect, it } from '@jest/globals';
import { ATTEMPT_COOKIE, withoutSessionCookies } from '../../src/http/credentials/session-cookie.ts';

describe('The cookies of the console', () => {
  it.each([
    ['__Host-tollgate=tgs_x', ''],
    ['a=1; __Host-tollgate=tgs_x; b=2', 'a=1; b=2'],
    ['__Host-tollgate=tgs_x; a="1 ,\\";  b=%20', 'a="1 ,\\";  b=%20'],
    [`a=1;${ATTEMPT_COOKIE}=x;b=2;__Host-tollgate=y`, 'a=1;b=2'],
    ['a=1; __Host-tollgate', 'a=1'],
    ['__Host-tollgate =x; a=1', 'a=1'],
    [
      'a=__Host-tollgate; __Host-tollgateway=1; x__Host-tollgate=2',
      'a=__Host-tollgate; __Host-tollgateway=1; x__Host-tollgate=2',
    ],
    ['a=1;  b=2;', 'a=1;  b=2;'],
  ])('are removed from %j, and nothing else is', (header, expected) => {
    expect(withoutSessionCookies(header)).toBe(expected);
  });
});
