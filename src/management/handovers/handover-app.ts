import type { IncomingMessage, ServerResponse } from 'node:http';
import express, { type Express, type RequestHandler } from 'express';
import { SELF_SERVICE_PATH } from '../../paths/path-matcher.ts';
import { createBuiltPage } from '../built-page.ts';
import { createEndpointApp, type EndpointAppOptions, EXACT_PATHS } from '../management-app.ts';
import { notePrincipal } from '../principal-of.ts';
import { HANDOVER_PATH, HOLDER, HOLDER_ENDPOINTS } from './opened-handover.ts';

/** The operation of requests for the files of the page of links, in metrics and the access log. */
export const HANDOVER_PAGE_OPERATION = 'handoverPage';

/** The page of links, and what it asks for, on the public port. */
export interface HandoverApp {
  /** The path that it is at or below. */
  readonly path: string;
  readonly serve: (req: IncomingMessage, res: ServerResponse) => void;
}

/** Builds the page of links below `ownPath`, that of self-service. Nothing of it is made before its first request. */
export function createHandoverApp(
  ownPath: string,
  { pages, ...options }: Omit<EndpointAppOptions, 'authenticated' | 'pages'> & { readonly pages: string },
): HandoverApp {
  let app: Express | undefined;
  return {
    path: ownPath + HANDOVER_PATH.slice(SELF_SERVICE_PATH.length),
    serve(req, res) {
      app ??= createEndpointApp(HOLDER_ENDPOINTS, {
        ...options,
        authenticated: noteHolder,
        pages: pagesOf(pages),
      });
      // The endpoints are routed at the default path.
      req.url = SELF_SERVICE_PATH + (req.url ?? '').slice(ownPath.length);
      app(req, res);
    },
  };
}

const noteHolder: RequestHandler = (_req, res, next) => {
  notePrincipal(res, HOLDER);
  next();
};

/** GET and HEAD show the page, whatever sends them: a preview of a chat program uses nothing up. */
function pagesOf(directory: string): RequestHandler {
  const page = createBuiltPage({ directory, name: 'handover', operation: HANDOVER_PAGE_OPERATION });
  const endpoints = HOLDER_ENDPOINTS.map(({ path }) => path.slice(HANDOVER_PATH.length));
  return express.Router(EXACT_PATHS).use(HANDOVER_PATH, (req, res, next) => {
    // Below a slash at its end the page would not find its files.
    const isBelowSlash = req.path === '/' && req.originalUrl.startsWith(`${HANDOVER_PATH}/`);
    if (isBelowSlash || endpoints.includes(req.path)) next();
    else page(req, res, next);
  });
}
