import { setTimeout as pause } from 'node:timers/promises';
import { ManagementFault } from '../../client/management-fault.ts';
import { DEFAULT_RETRIES, retryingFetch } from '../../client/retrying-fetch.ts';
import { systemClock } from '../../platform/clock.ts';
import { isObject } from '../../platform/is-object.ts';
import { CommandFault } from '../command-fault.ts';
import { shownCell } from '../output/table.ts';
import type { Terminal } from '../terminal.ts';
import { listenForCallback } from './loopback-callback.ts';
import { openInBrowser } from './open-in-browser.ts';

interface SignInOptions {
  /** The address of the management interface. */
  readonly url: string;
  /** Whether a browser is started where one of this machine is needed. */
  readonly opensBrowser: boolean;
}

/** A session that the gateway has opened for a person. */
export interface OpenedSession {
  readonly secret: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expiresAt: string;
}

/** How long the gateway accepts the response to an attempt. Milliseconds. */
const ATTEMPT_MS = 600_000;
/** RFC 8628, section 3.5. */
const SLOWER_BY_S = 5;

/**
 * Has a person sign in at the identity provider of a gateway: on any device where the provider lets one (RFC 8628), or else in a browser of
 * this machine (RFC 8252).
 */
export async function signInAtProvider(options: SignInOptions, terminal: Terminal): Promise<OpenedSession> {
  const begun = await post(options.url, '', {});
  return begun.method === 'device' ? onAnyDevice(begun, options, terminal) : inBrowserHere(options, terminal);
}

async function onAnyDevice(
  begun: Fields,
  { url }: SignInOptions,
  { stderr }: Terminal,
): Promise<OpenedSession> {
  const { ticket, userCode, verificationUri, verificationUriComplete } = begun;
  stderr.write(`Open ${webAddress(verificationUri)} and enter the code ${shownCell(String(userCode))}\n`);
  if (typeof verificationUriComplete === 'string')
    stderr.write(`or open ${webAddress(verificationUriComplete)} and compare the code.\n`);
  const endAtMs = systemClock.monotonicMs() + seconds(begun.expiresInS) * 1000;
  let intervalS = seconds(begun.intervalS);
  for (;;) {
    // Asked later, the gateway would say that there was no such sign-in.
    if (systemClock.monotonicMs() + intervalS * 1000 >= endAtMs)
      throw new CommandFault('credentials', 'The code has expired: run the command again.');
    await pause(intervalS * 1000);
    const finished = await post(url, '/finish', { ticket });
    if (finished.state === 'signed_in') return sessionIn(finished);
    if (finished.state === 'slow_down') intervalS += SLOWER_BY_S;
  }
}

async function inBrowserHere(
  { url, opensBrowser }: SignInOptions,
  { stderr }: Terminal,
): Promise<OpenedSession> {
  const loopback = await listenForCallback();
  const isLate = new AbortController();
  try {
    const begun = await post(url, '', { redirectUri: loopback.redirectUri });
    const address = webAddress(begun.url);
    stderr.write(`Sign in with a browser of this machine, at ${address}\n`);
    if (opensBrowser) await openInBrowser(address);
    const query = await Promise.race([
      loopback.queryWith(new URL(address).searchParams.get('state') ?? ''),
      pause(ATTEMPT_MS, undefined, { signal: isLate.signal }),
    ]);
    if (query === undefined)
      throw new CommandFault('credentials', 'There was no sign-in for ten minutes: run the command again.');
    return sessionIn(await post(url, '/finish', { ticket: begun.ticket, query }));
  } finally {
    isLate.abort();
    loopback.close();
  }
}

type Fields = Readonly<Record<string, unknown>>;

async function post(url: string, path: string, body: object): Promise<Fields> {
  // A code can be redeemed once: a second attempt could only fail.
  const retries = 'query' in body ? 0 : DEFAULT_RETRIES;
  const response = await retryingFetch({ retries })(
    new Request(`${url}/tollgate/sign-in/command${path}`, {
      method: 'POST',
      redirect: 'error',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    }),
  );
  const found: unknown = await response.json().catch(() => undefined);
  if (response.status === 404 && isObject(found) && found.code === 'not_found')
    throw new CommandFault(
      'notFound',
      'The gateway has no identity provider (OIDC_ISSUER), or is older: sign in with a token.',
    );
  if (!response.ok || !isObject(found)) throw new ManagementFault(response, found);
  return found;
}

function sessionIn({ secret, name, scopes, expiresAt }: Fields): OpenedSession {
  const isSession =
    typeof secret === 'string' &&
    /^tgs_\w+$/.test(secret) &&
    typeof name === 'string' &&
    Array.isArray(scopes);
  if (!isSession || typeof expiresAt !== 'string') throw notOfGateway();
  return { secret, name: shownCell(name), scopes, expiresAt: shownCell(expiresAt) };
}

/** An address that a browser may be sent to, and that a terminal may show. */
function webAddress(text: unknown): string {
  const url = typeof text === 'string' ? URL.parse(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) throw notOfGateway();
  return url.href;
}

function seconds(value: unknown): number {
  if (typeof value === 'number' && value > 0 && value <= 86_400) return value;
  throw notOfGateway();
}

function notOfGateway(): CommandFault {
  return new CommandFault('fault', "The response is not one of Tollgate's management interface.");
}
