import type { IncomingMessage } from 'node:http';
import { TollgateError } from '../../errors.ts';

/** The header that comes with each request of the console. No form can send it, and a page of another origin may not. */
export const CONSOLE_HEADER = 'tollgate-console';
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/**
 * Throws `origin_not_allowed` for a request with the cookie of a session that is not one of the console: browsers send cookies with the
 * requests of other pages, too.
 */
export function requireConsole(
  { headers, method = '' }: Pick<IncomingMessage, 'headers' | 'method'>,
  publicOrigin: string,
): void {
  const { origin } = headers;
  const site = headers['sec-fetch-site'];
  const isOwnOrigin = origin === undefined ? SAFE_METHODS.has(method) : origin === publicOrigin;
  const isOwnPage = site === undefined || site === 'same-origin';
  if (isOwnOrigin && isOwnPage && headers[CONSOLE_HEADER] !== undefined) return;
  throw new TollgateError(
    'origin_not_allowed',
    `A session is for the console at ${publicOrigin}: its requests have that Origin and the header Tollgate-Console.`,
  );
}
