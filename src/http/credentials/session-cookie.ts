import { TollgateError } from '../../errors.ts';

/** The cookie with the secret of a person's session. The prefix binds it to the host that set it, over TLS (RFC 6265bis 4.1.3.2). */
export const SESSION_COOKIE = '__Host-tollgate';
/** The cookie with what a browser keeps while its user signs in. */
export const ATTEMPT_COOKIE = '__Host-tollgate-sign-in';

/**
 * The value of a `Cookie` header without the cookies of the console; the others stay byte for byte. Cookies know no ports: a browser sends
 * those of the console to the proxied port of the same host as well.
 */
export function withoutSessionCookies(header: string): string {
  if (!header.includes(SESSION_COOKIE)) return header;
  const kept = header.split(';').filter((pair) => !isOfConsole(nameOf(pair)));
  return kept.join(';').trimStart();
}

/** The value of one of the cookies; undefined if it is missing. Throws `bad_request` if it is there twice, which no browser sends. */
export function cookieIn(header: string | undefined, name: string): string | undefined {
  if (header === undefined || !header.includes(name)) return undefined;
  const [pair, ...others] = header.split(';').filter((each) => nameOf(each) === name);
  if (others.length > 0) throw new TollgateError('bad_request', `The request has the cookie ${name} twice.`);
  return pair === undefined ? undefined : withoutBlanks(pair.slice(pair.indexOf('=') + 1));
}

function isOfConsole(name: string): boolean {
  return name === SESSION_COOKIE || name === ATTEMPT_COOKIE;
}

function nameOf(pair: string): string {
  return withoutBlanks(pair.split('=', 1)[0] ?? '');
}

/**
 * As browsers read cookies: only of blanks and tabs (RFC 6265bis 5.6). `trim` also removes other white space, and a name that begins with
 * that has no prefix for a browser, which lets any host of the site set it.
 */
function withoutBlanks(text: string): string {
  return text.replaceAll(/^[ \t]+|(?<![ \t])[ \t]+$/g, '');
}
