import type { IncomingMessage, ServerResponse } from 'node:http';
import express, { type RequestHandler } from 'express';
import { errorHandler } from '../../http/errors/error-handler.ts';
import { PORTAL_PATH } from '../../paths/path-matcher.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import { escapeMarkup } from '../../platform/text/escape-markup.ts';
import { createBuiltPage, PORTAL_OPERATION } from '../built-page.ts';
import { EXACT_PATHS } from '../management-app.ts';
import { setSecurityHeaders } from '../security-headers.ts';
import { brandStyles } from './brand-styles.ts';
import type { Logo } from './read-logo.ts';

/** What the portal looks like, and where it leads. */
interface Brand {
  readonly name: string;
  readonly logo: Logo | null;
  readonly docsUrl: string | null;
  readonly supportUrl: string | null;
  /** `#rrggbb`. */
  readonly color: string | null;
}

/** The parts of the portal. */
interface PortalOptions {
  readonly brand: Brand;
  readonly selfServicePath: string;
  /** Null: the page takes the address that it was loaded from. */
  readonly publicUrl: string | null;
  /** Where `npm run build:console` has put the pages for consumers. */
  readonly pages: string;
  readonly log: Logger;
  readonly clock: Clock;
}

/** A brand may change with each start of the gateway; the files of the page have hashes in their names. */
const BRAND_CACHING = 'public, max-age=300';

/**
 * Serves the portal: one page, its files and its brand, to anyone. They hold no data: the page asks self-service with the consumer's key.
 */
export function createPortalApp(options: PortalOptions): (req: IncomingMessage, res: ServerResponse) => void {
  const { pages: directory, brand, log, clock } = options;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.use(setSecurityHeaders, withoutSlash);
  app.use(
    PORTAL_PATH,
    createBuiltPage({
      ...{ directory, name: 'portal', operation: PORTAL_OPERATION },
      complete: (html) => completed(html, options),
      further: sendBrand(brand),
    }),
  );
  app.use(errorHandler(log, clock));
  return app;
}

/** Below a slash at its end the page would not find its files. The address is relative, so that it is right behind any proxy. */
const withoutSlash: RequestHandler = (req, res, next) => {
  if (req.path === `${PORTAL_PATH}/`) res.redirect(308, '../portal');
  else next();
};

/** A logo that a browser opens by itself runs no script and is in no frame of the gateway's pages. */
const LOGO_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";

function sendBrand({ logo, color }: Brand): RequestHandler {
  const router = express.Router(EXACT_PATHS);
  if (color !== null) {
    const styles = brandStyles(color);
    router.get('/brand.css', (_req, res) => {
      res.set('Cache-Control', BRAND_CACHING).type('css').send(styles);
    });
  }
  if (logo !== null)
    router.get('/logo', (_req, res) => {
      res.set({ 'Cache-Control': BRAND_CACHING, 'Content-Security-Policy': LOGO_POLICY });
      res.type(logo.type).send(logo.content);
    });
  return router;
}

/** What the page has to know comes with it: it needs no further request, and its policy allows no inline script. */
function completed(html: string, { brand, selfServicePath, publicUrl }: PortalOptions): string {
  const { name, logo, color, docsUrl, supportUrl } = brand;
  const facts = { name, hasLogo: logo !== null, docsUrl, supportUrl, selfServicePath, publicUrl };
  return html
    .replace('<title></title>', () => `<title>${escapeMarkup(name)}</title>`)
    .replace('content="{}"', () => `content="${escapeMarkup(JSON.stringify(facts))}"`)
    .replace('</head>', () =>
      color === null ? '</head>' : '<link rel="stylesheet" href="./portal/brand.css"></head>',
    );
}
