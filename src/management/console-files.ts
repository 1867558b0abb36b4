import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import { TollgateError } from '../errors.ts';
import { MethodNotAllowed } from '../http/errors/method-not-allowed.ts';
import type { RequestNotes } from '../http/with-request-id.ts';
import { setPageSecurityHeaders } from './security-headers.ts';

/** The path of the console on the port of the management interface. */
export const CONSOLE_PATH = '/tollgate/console';
/** The operation of requests for the console's files, in metrics and the access log. */
export const CONSOLE_OPERATION = 'console';

const BUILD = 'The console is not built: run "npm run build:console".\n';
/** The names of the build's files: without a path, and without the suffix of a compressed copy. */
const FILE_NAME = /^[\w-][\w.-]*\.(?:css|html|ico|js|json|png|svg|webmanifest|woff2)$/;
/**
 * A file with a dot in its name, directly below the console's path. Paths of pages may contain dots too, but only further down, in the ids
 * of plans.
 */
const TOP_LEVEL_FILE = /^\/[^/]*\.[^/]*$/;
const CODINGS = [
  { coding: 'br', suffix: '.br' },
  { coding: 'gzip', suffix: '.gz' },
] as const;

/**
 * Serves the console's files, which `npm run build:console` has put into a directory, to anyone: they hold no data, which comes from the
 * management interface and needs a token. Compressed copies may lie beside a file. No file is read before its first request.
 */
export function createConsoleApp(directory: string): Express {
  const app = express();
  const assetOf = onceRead();
  app.disable('x-powered-by');
  app.enable('case sensitive routing');
  app.use(noteOperation, setPageSecurityHeaders, rejectOtherMethods);
  app.get('/assets/*name', async (req, res) => {
    const file = await chosenFile(req, res, {
      directory: join(directory, 'assets'),
      name: String(req.params.name),
    });
    // The name contains a hash of the content: the content under a name never changes.
    res.set('Cache-Control', 'public, max-age=31536000, immutable').send(await assetOf(file));
  });
  app.get(TOP_LEVEL_FILE, (req, res) => sendCurrent(req, res, { directory, name: req.path.slice(1) }));
  // Every page of the console is index.html; its script shows the page for the path.
  app.get('/{*page}', async (req, res) => {
    if (await isFile(join(directory, 'index.html')))
      return sendCurrent(req, res, { directory, name: 'index.html' });
    res.status(404).type('text').send(BUILD);
  });
  return app;
}

const noteOperation: RequestHandler = (_req, res, next) => {
  (res.locals as RequestNotes).operation = CONSOLE_OPERATION;
  next();
};

const rejectOtherMethods: RequestHandler = (req, _res, next) => {
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    throw new MethodNotAllowed(['GET', 'HEAD'], 'The console responds only to GET, HEAD.');
  }
  next();
};

/** A file of the build, which may not exist. */
interface ConsoleFile {
  readonly directory: string;
  /** As the client sent it. */
  readonly name: string;
}

/** Sends a file whose content may change. Its tag is made from the content, because files of an npm package all have the same date. */
async function sendCurrent(req: Request, res: Response, file: ConsoleFile): Promise<void> {
  const content = await readFile(await chosenFile(req, res, file));
  res.set('Cache-Control', 'no-cache').send(content);
}

/** Caches the content of files: a slow client holds neither an open file nor a copy. */
function onceRead(): (path: string) => Promise<Buffer> {
  const contents = new Map<string, Buffer>();
  return async (path) => {
    const content = contents.get(path) ?? (await readFile(path));
    contents.set(path, content);
    return content;
  };
}

/** The path of the file, or of a compressed copy if the client accepts one; then it sets `Content-Encoding`. Throws `not_found`. */
async function chosenFile(req: Request, res: Response, { directory, name }: ConsoleFile): Promise<string> {
  const path = join(directory, name);
  if (!FILE_NAME.test(name) || !(await isFile(path))) {
    throw new TollgateError('not_found', 'The console has no such file.');
  }
  res.type(name).vary('Accept-Encoding');
  for (const { coding, suffix } of CODINGS) {
    if (req.acceptsEncodings(coding) && (await isFile(path + suffix))) {
      res.set('Content-Encoding', coding);
      return path + suffix;
    }
  }
  return path;
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}
