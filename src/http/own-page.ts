import type { IncomingMessage } from 'node:http';
import { LOOPBACK_HOST } from '../platform/loopback-host.ts';

/** Whether a request comes from a page of the gateway itself, as far as its headers say so. */
export type IsOwnPage = (req: Pick<IncomingMessage, 'headers'>) => boolean;

/**
 * Recognizes requests of the gateway's own pages. A script in a page of another origin can change none of these headers; a program
 * outside of a browser can send any, here as everywhere. In this order:
 *
 * - `Origin` is that of `publicUrl`.
 * - The browser says `Sec-Fetch-Site: same-origin`. An `Origin` with another host than `Host` contradicts that.
 * - For development, from a browser that says neither: `Origin` and `Host` are the same address of this machine. Elsewhere such a `Host`
 *   proves nothing: the owner of a name can let it point to the gateway.
 */
export function ownPageTest(publicUrl: string | null): IsOwnPage {
  return ({ headers: { origin, host, 'sec-fetch-site': site } }) => {
    if (origin === undefined) return site === 'same-origin';
    if (origin === publicUrl) return true;
    if (host === undefined || (origin !== `https://${host}` && origin !== `http://${host}`)) return false;
    return site === undefined ? LOOPBACK_HOST.test(host) : site === 'same-origin';
  };
}
