import { describe, expect, it } from '@jest/globals';
import {
  ATTEMPT_COOKIE,
  cookieIn,
  SESSION_COOKIE,
  withoutSessionCookies,
} from '../../src/http/credentials/session-cookie.ts';

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

  it.each([
    '__Host-tollgate=tgs_x',
    '__Host-tollgate \t=\t tgs_x \t',
    '__Host-tollgate-sign-in=y;\t__Host-tollgate=tgs_x',
    '\u00a0__Host-tollgate=y; __Host-tollgate=tgs_x; __Host-tollgate\ufeff=y',
  ])('are read from %j', (header) => {
    expect(cookieIn(header, SESSION_COOKIE)).toBe('tgs_x');
  });

  // A browser sees no prefix in these names, and lets each host of a site set them for all others.
  it.each(['\u00a0', '\ufeff', '\u000b', '\f'])('are no others whose name begins with %j', (blank) => {
    expect(cookieIn(`${blank}__Host-tollgate=tgs_x`, SESSION_COOKIE)).toBeUndefined();
    expect(cookieIn(`a=1; ${blank}__Host-tollgate=tgs_x`, SESSION_COOKIE)).toBeUndefined();
  });
});
