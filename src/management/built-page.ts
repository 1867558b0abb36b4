import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import express, { type RequestHandler, type Router } from 'express';
import { TollgateError } from '../errors.ts';
import { assetSender, isFile, pageHandlers } from './built-files.ts';
import { EXACT_PATHS } from './management-app.ts';

/** A page for consumers. */
export interface BuiltPageOptions {
  /** Where `npm run build:console` has put the pages for consumers. */
  readonly directory: string;
  /** Of the file, and of the last segment of the path that the page is served at. */
  readonly name: string;
  /** In metrics and the access log. */
  readonly operation: string;
  /** Completes the HTML of the page; it is sent as it is by default. */
  readonly complete?: (html: string) => string;
  /** Responds to further paths. */
  readonly further?: RequestHandler;
}

/** The operation of requests for the portal's files, in metrics and the access log. */
export const PORTAL_OPERATION = 'portal';

const NOT_BUILT = 'The page is not built: run "npm run build:console".\n';

/** Serves a page for consumers, and its files below it, to anyone: they hold no data. Responds to `/` and `/assets/…`. */
export function createBuiltPage({
  directory,
  name,
  operation,
  complete = (html) => html,
  further,
}: BuiltPageOptions): Router {
  const page = express.Router(EXACT_PATHS);
  const sendAsset = assetSender(directory);
  const file = join(directory, `${name}.html`);
  page.use(...pageHandlers(operation, 'The page'));
  page.get('/', async (_req, res) => {
    if (!(await isFile(file))) return void res.status(404).type('text').send(NOT_BUILT);
    // The page has no slash at its end, so its files are relative to the segment before it.
    const html = (await readFile(file, 'utf8')).replaceAll('"./assets/', `"./${name}/assets/`);
    res.set('Cache-Control', 'no-store').type('html').send(complete(html));
  });
  page.get('/assets/*name', (req, res) => sendAsset(req, res, String(req.params.name)));
  if (further !== undefined) page.use(further);
  page.use(() => {
    throw new TollgateError('not_found', 'There is nothing at this path.');
  });
  return page;
}
