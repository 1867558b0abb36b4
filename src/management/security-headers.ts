import type { RequestHandler } from 'express';

/** For all responses: they hold secrets and current counts, and browsers must not guess another content type. */
export const setSecurityHeaders: RequestHandler = (_req, res, next) => {
  res.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' });
  next();
};

/**
 * Further headers for the console: scripts, styles and requests only from its own origin, nothing inline, no frames, and no `Referer` to
 * other sites.
 */
export const setPageSecurityHeaders: RequestHandler = (_req, res, next) => {
  res.set({
    'Content-Security-Policy':
      "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
  });
  next();
};
