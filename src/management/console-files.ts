import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import { TollgateError } from '../errors.ts';
import { MethodNotAllowed } from '../http/errors/method-not-allowed.ts';
import type { RequestNotes } from '../http/with-request-id.ts';
import { setPageSecurityHeaders } from './security-headers.ts';

/** Where the console is, on the port of the management interface. */
export const CONSOLE_PATH = '/tollgate/console';
/** What metrics and the access log call requests for the console's files. */
export const CONSOLE_OPERATION = 'console';

const BUILD = 'The console is not built: run "npm run build:console".\n';
/** What the build makes, and nothing beside it: a name without a path, and no compressed copy by its own name. */
const FILE_NAME = /^[\w-][\w.-]*\.(?:css|html|ico|js|json|png|svg|webmanifest|woff2)$/;
/** A file whose name has a dot, directly below the console's path. Paths of pages may have dots too, but further down: plans have them in their ids. */
const TOP_LEVEL_FILE = /^\/[^/]*\.[^/]*$/;
const CODINGS = [
  { coding: 'br', suffix: '.br' },
  { coding: 'gzip', suffix: '.gz' },
] as const;

/**
 * Serves the files of the console from a directory that `npm run build:console` made, to anyone: what they show comes from the management interface, which asks
 * for a token. Each file may lie beside copies of it that are compressed already. No file is read before its first request.
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
    // The name has a hash of the content: what has this name never changes.
    res.set('Cache-Control', 'public, max-age=31536000, immutable').send(await assetOf(file));
  });
  app.get(TOP_LEVEL_FILE, (req, res) => sendCurrent(req, res, { directory, name: req.path.slice(1) }));
  // A page of the console: which one is for its script to say.
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

/** A file of the build, which may not be there. */
interface ConsoleFile {
  readonly directory: string;
  /** As the client wrote it. */
  readonly name: string;
}

/** Sends a file that may be another one tomorrow. Its tag is made from what is in it: files of an npm package all have the same date. */
async function sendCurrent(req: Request, res: Response, file: ConsoleFile): Promise<void> {
  const content = await readFile(await chosenFile(req, res, file));
  res.set('Cache-Control', 'no-cache').send(content);
}

/** Keeps each file that was read: a client that takes one slowly holds neither an open file nor a copy. */
function onceRead(): (path: string) => Promise<Buffer> {
  const contents = new Map<string, Buffer>();
  return async (path) => {
    const content = contents.get(path) ?? (await readFile(path));
    contents.set(path, content);
    return content;
  };
}

/** The path of the file as the client takes it, compressed if possible; sets the headers that say so. Throws `not_found`. */
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
