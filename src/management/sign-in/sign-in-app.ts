import type { BlockList } from 'node:net';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import { TollgateError } from '../../errors.ts';
import type { BodyBudget } from '../../http/body-budget.ts';
import { clientAddress } from '../../http/client-address.ts';
import { ATTEMPT_COOKIE, cookieIn, SESSION_COOKIE } from '../../http/credentials/session-cookie.ts';
import { MethodNotAllowed } from '../../http/errors/method-not-allowed.ts';
import { jsonBody } from '../../http/json-body.ts';
import type { RequestNotes } from '../../http/with-request-id.ts';
import { isAtOrBelow } from '../../paths/path-matcher.ts';
import type { Clock } from '../../platform/clock.ts';
import { isoSeconds } from '../../platform/timestamps.ts';
import type { People } from '../../sign-in/people.ts';
import type { OpenedSession } from '../../sign-in/sessions.ts';
import type { AttemptContext } from '../../sign-in/sign-in.ts';
import { SignInFailure, type SignInReason } from '../../sign-in/sign-in-failure.ts';
import { CONSOLE_PATH } from '../console-files.ts';

/** The paths of sign-in are here and below. */
export const SIGN_IN_PATH = '/tollgate/sign-in';
/** The operation of their requests, in metrics and the access log. */
export const SIGN_IN_OPERATION = 'signIn';
/** How long the browser keeps an attempt. */
const ATTEMPT_S = 600;

interface SignInAppOptions {
  readonly people: Pick<People, 'signIn' | 'sessions' | 'publicOrigin'>;
  readonly trustedProxies: BlockList;
  readonly bodyBudget: BodyBudget;
  readonly clock: Clock;
  /** Whether there is a console to sign in to. */
  readonly hasConsole: boolean;
}

/** The pages by which a browser signs in, and what the command does in their place. None of them needs a credential. */
export function createSignInApp(options: SignInAppOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.set('query parser', 'simple');
  app.use((_req, res, next) => {
    (res.locals as RequestNotes).operation = SIGN_IN_OPERATION;
    // The address of the callback holds a code.
    res.set('Referrer-Policy', 'no-referrer');
    next();
  });
  if (options.hasConsole) {
    app.all('/', only('GET'), beginInBrowser(options));
    app.all('/callback', only('GET'), finishInBrowser(options));
  }
  app.all('/command', only('POST'), ...jsonBody(options.bodyBudget), beginCommand(options));
  app.all('/command/finish', only('POST'), ...jsonBody(options.bodyBudget), finishCommand(options));
  return app;
}

function only(method: string): RequestHandler {
  return (req, _res, next) => {
    if (req.method !== method)
      throw new MethodNotAllowed([method], `This endpoint responds only to ${method}.`);
    next();
  };
}

function beginInBrowser({ people, trustedProxies }: SignInAppOptions): RequestHandler {
  return async (req, res) => {
    const context = contextOf(req, res, trustedProxies);
    const returnTo = ownPath(req.query.return, people.publicOrigin);
    try {
      const redirectUri = `${people.publicOrigin}${SIGN_IN_PATH}/callback`;
      const { url, ticket } = await people.signIn.begin('browser', redirectUri, returnTo, context);
      res.append('Set-Cookie', cookie(ATTEMPT_COOKIE, ticket, ATTEMPT_S)).redirect(302, url.href);
    } catch (error) {
      showFailure(error, res, { ...context, returnTo });
    }
  };
}

function finishInBrowser({ people, trustedProxies, clock }: SignInAppOptions): RequestHandler {
  const { signIn, sessions, publicOrigin } = people;
  return async (req, res) => {
    const context = contextOf(req, res, trustedProxies);
    const ticket = cookieIn(req.headers.cookie, ATTEMPT_COOKIE);
    const query = new URL(req.originalUrl, publicOrigin).search;
    // Whatever comes of it, this attempt is over; but the last one of another tab may go on.
    if (!signIn.isOfOtherAttempt('browser', { ticket, query }))
      res.append('Set-Cookie', cookie(ATTEMPT_COOKIE, '', 0));
    try {
      const { session, secret, returnTo } = await signIn.finish('browser', { ticket, query }, context);
      const before = cookieIn(req.headers.cookie, SESSION_COOKIE);
      if (before !== undefined) await sessions.endOf(before, context);
      const maxAgeS = Math.floor((session.expiresAtMs - clock.nowMs()) / 1000);
      res.append('Set-Cookie', cookie(SESSION_COOKIE, secret, maxAgeS));
      res.redirect(303, ownPath(returnTo, publicOrigin));
    } catch (error) {
      const returnTo = ownPath(signIn.returnToOf('browser', ticket), publicOrigin);
      showFailure(error, res, { ...context, returnTo });
    }
  };
}

function beginCommand({ people: { signIn }, trustedProxies }: SignInAppOptions): RequestHandler {
  return async (req, res) => {
    const context = contextOf(req, res, trustedProxies);
    const redirectUri = loopbackUri(fieldOf(req, 'redirectUri'));
    const begun = await asErrors(async () => {
      if (redirectUri !== undefined) {
        const { url, ticket } = await signIn.begin('command', redirectUri, null, context);
        return { method: 'loopback', url: url.href, ticket };
      }
      const begun = await signIn.beginDevice(context);
      if (begun === undefined) return { method: 'loopback' };
      const { device, ticket } = begun;
      return { method: 'device', ...device, ticket };
    });
    res.json(begun);
  };
}

function finishCommand({ people: { signIn }, trustedProxies }: SignInAppOptions): RequestHandler {
  return async (req, res) => {
    const context = contextOf(req, res, trustedProxies);
    const ticket = fieldOf(req, 'ticket') ?? '';
    const query = fieldOf(req, 'query');
    const opened = await asErrors(() =>
      query === undefined
        ? signIn.finishDevice(ticket, context)
        : signIn.finish('command', { ticket, query }, context),
    );
    res.json(
      typeof opened === 'string' ? { state: opened } : { state: 'signed_in', ...presentOpened(opened) },
    );
  };
}

function presentOpened({ session, secret }: OpenedSession): object {
  const { id: sessionId, name, email, scopes, onlyTags, expiresAtMs } = session;
  return { sessionId, secret, name, email, scopes, onlyTags, expiresAt: isoSeconds(expiresAtMs) };
}

/** A text field of the body. Throws `bad_request` for a field of another type. */
function fieldOf(req: Request, name: string): string | undefined {
  const body: unknown = req.body;
  const value: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, name) : undefined;
  if (value === undefined || (typeof value === 'string' && value.length <= LONGEST_FIELD)) return value;
  throw new TollgateError('bad_request', `"${name}" must be a text of at most ${LONGEST_FIELD} characters.`);
}

const LONGEST_FIELD = 8192;

/** RFC 8252, section 7.3: a command listens on a loopback address, on any port. Throws `bad_request` for another address. */
function loopbackUri(text: string | undefined): string | undefined {
  if (text === undefined) return text;
  // The pattern lets ports through that do not exist.
  if (/^http:\/\/(?:127\.0\.0\.1|\[::1\]):[1-9]\d{0,4}\/callback$/.test(text) && URL.canParse(text))
    return text;
  throw new TollgateError('bad_request', '"redirectUri" must be like http://127.0.0.1:49152/callback.');
}

async function asErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SignInFailure)) throw error;
    const code = error.reason === 'provider_unavailable' ? 'provider_unavailable' : 'sign_in_rejected';
    throw new TollgateError(code, error.message, error);
  }
}

/** Shows a failure on the sign-in page of the console, which has the sentence for each reason, and leads back to the page that was wanted. */
function showFailure(
  error: unknown,
  res: Response,
  { requestId, returnTo }: AttemptContext & { readonly returnTo: string },
): void {
  if (!(error instanceof SignInFailure)) throw error;
  const page = new URL(returnTo, 'http://unused');
  page.searchParams.set('signIn', error.reason satisfies SignInReason);
  page.searchParams.set('requestId', requestId);
  res.redirect(303, page.pathname + page.search);
}

function contextOf(req: Request, res: Response, trustedProxies: BlockList): AttemptContext {
  return {
    requestId: (res.locals as RequestNotes).requestId,
    address: clientAddress(req, trustedProxies),
  };
}

/** As JSON, in which the attempt keeps it: its cookie must stay below the 4096 bytes that browsers keep. */
const LONGEST_RETURN = 2048;

/** The page of the console that a text names; the first one if it names any other place, or one that is too long. */
function ownPath(text: unknown, publicOrigin: string): string {
  const url = typeof text === 'string' ? URL.parse(text, publicOrigin) : null;
  if (url === null || url.origin !== publicOrigin || !isAtOrBelow(url.pathname, CONSOLE_PATH))
    return CONSOLE_PATH;
  // Encoded, a character of the text may be many bytes.
  const path = url.pathname + url.search;
  return JSON.stringify(path).length <= LONGEST_RETURN ? path : CONSOLE_PATH;
}

function cookie(name: string, value: string, maxAgeS: number): string {
  return `${name}=${value}; Path=/; Max-Age=${maxAgeS}; Secure; HttpOnly; SameSite=Lax`;
}

/** Removes the cookie of a session. */
export const END_OF_SESSION_COOKIE = cookie(SESSION_COOKIE, '', 0);
