import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import express, { type Express, type Request, type Response } from 'express';
import { cookieIn, SESSION_COOKIE } from '../http/credentials/session-cookie.ts';
import { assetSender, isFile, pageHandlers, sendCurrent } from './built-files.ts';

/** The path of the console on the port of the management interface. */
export const CONSOLE_PATH = '/tollgate/console';
/** The operation of requests for the console's files, in metrics and the access log. */
export const CONSOLE_OPERATION = 'console';

const BUILD = 'The console is not built: run "npm run build:console".\n';
/**
 * A file with a dot in its name, directly below the console's path. Paths of pages may contain dots too, but only further down, in the ids
 * of plans.
 */
const TOP_LEVEL_FILE = /^\/[^/.]*\.[^/]*$/;
/**
 * Serves the console's files, which `npm run build:console` has put into a directory, to anyone: they hold no data, which comes from the
 * management interface and needs a token. Compressed copies may lie beside a file. No file is read before its first request. With ways to
 * sign in, the page names them, and says whether the browser has the cookie of a session.
 */
export function createConsoleApp(directory: string, waysToSignIn?: WaysToSignIn): Express {
  const app = express();
  const sendAsset = assetSender(directory);
  app.disable('x-powered-by');
  app.enable('case sensitive routing');
  app.use(...pageHandlers(CONSOLE_OPERATION, 'The console'));
  app.get('/assets/*name', (req, res) => sendAsset(req, res, String(req.params.name)));
  app.get(TOP_LEVEL_FILE, (req, res) => sendCurrent(req, res, { directory, name: req.path.slice(1) }));
  // Every page of the console is index.html; its script shows the page for the path.
  app.get('/{*page}', async (req, res) => {
    const page = join(directory, 'index.html');
    if (!(await isFile(page))) res.status(404).type('text').send(BUILD);
    else if (waysToSignIn === undefined) await sendCurrent(req, res, { directory, name: 'index.html' });
    else await sendWithSignIn(req, res, { ...waysToSignIn, page });
  });
  return app;
}

/** How one can sign in, where that is not with any token and nothing else. */
export interface WaysToSignIn {
  /** The host of the identity provider; undefined if there is none. */
  readonly providerHost: string | undefined;
  readonly rootTokenSignIn: 'on' | 'off';
}

/** Sends the page with what the console must know before its first request. The host is that of a URL: it needs no escapes. */
async function sendWithSignIn(
  req: Request,
  res: Response,
  { page, providerHost = '', rootTokenSignIn }: WaysToSignIn & { readonly page: string },
): Promise<void> {
  const html = await readFile(page, 'utf8');
  const isSignedIn = cookieIn(req.headers.cookie, SESSION_COOKIE) !== undefined;
  const tag = `<meta name="tollgate-sign-in" content="${providerHost}" data-session="${isSignedIn}" data-root-token="${rootTokenSignIn}">`;
  const content = html.replace('</head>', `${tag}</head>`);
  res.type('html').vary('Cookie').set('Cache-Control', 'no-cache').send(content);
}
