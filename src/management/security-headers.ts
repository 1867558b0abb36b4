import type { RequestHandler } from 'express';

/** For all responses: they hold secrets and counts of the moment, and are never to be taken for anything but their type. */
export const setSecurityHeaders: RequestHandler = (_req, res, next) => {
  res.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' });
  next();
};

/** For the console besides: scripts, styles and requests only from here, nothing inline, no frames; a link tells no other site where it was. */
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
