import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Request, RequestHandler, Response } from 'express';
import { TollgateError } from '../errors.ts';
import { MethodNotAllowed } from '../http/errors/method-not-allowed.ts';
import type { RequestNotes } from '../http/with-request-id.ts';
import { setPageSecurityHeaders } from './security-headers.ts';

/** The names of the build's files: without a path, and without the suffix of a compressed copy. */
const FILE_NAME = /^[\w-][\w.-]*\.(?:css|html|ico|js|json|png|svg|webmanifest|woff2)$/;
const CODINGS = [
  { coding: 'br', suffix: '.br' },
  { coding: 'gzip', suffix: '.gz' },
] as const;

/** What comes before the files of a page: notes the `operation`, sets headers, and rejects other methods than GET and HEAD for `page`. */
export function pageHandlers(operation: string, page: string): readonly RequestHandler[] {
  const noteOperation: RequestHandler = (_req, res, next) => {
    (res.locals as RequestNotes).operation = operation;
    next();
  };
  const rejectOtherMethods: RequestHandler = (req, _res, next) => {
    if (req.method !== 'GET' && req.method !== 'HEAD')
      throw new MethodNotAllowed(['GET', 'HEAD'], `${page} responds only to GET, HEAD.`);
    next();
  };
  return [noteOperation, setPageSecurityHeaders, rejectOtherMethods];
}

/** Sends files with a hash of their content in their names: the content under a name never changes. */
export function assetSender(directory: string): (req: Request, res: Response, name: string) => Promise<void> {
  const assetOf = onceRead();
  return async (req, res, name) => {
    const file = await chosenFile(req, res, { directory: join(directory, 'assets'), name });
    res.set('Cache-Control', 'public, max-age=31536000, immutable').send(await assetOf(file));
  };
}

/** A file of a build, which may not exist. */
interface BuiltFile {
  readonly directory: string;
  /** As the client sent it. */
  readonly name: string;
}

/** Sends a file whose content may change. Its tag is made from the content, because files of an npm package all have the same date. */
export async function sendCurrent(req: Request, res: Response, file: BuiltFile): Promise<void> {
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
async function chosenFile(req: Request, res: Response, { directory, name }: BuiltFile): Promise<string> {
  const path = join(directory, name);
  if (!FILE_NAME.test(name) || !(await isFile(path))) {
    throw new TollgateError('not_found', 'There is no such file.');
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

/** Whether there is such a file. */
export async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}
