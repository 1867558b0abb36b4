import type { IncomingMessage, ServerResponse } from 'node:http';
import { createProxyMiddleware, type Plugin, type RequestHandler } from 'http-proxy-middleware';

/** Sends one request to the backend and answers it. Never throws. */
export type Transport = (req: IncomingMessage, res: ServerResponse) => void;

/**
 * http-proxy-middleware with its transport replaced: the middleware keeps its place in front, and a pass of ours, put before its last
 * one, takes the request over by returning true. Its own plugins are ejected, because we answer the errors and write the log.
 * `ws` stays off: it would send upgrades to the backend past authentication and limit.
 */
export function proxyMiddleware(backend: URL, transport: Transport): RequestHandler {
  const plugin: Plugin = (proxyServer) => {
    // The passes of httpxy have no names, and `before` finds the last one of a name: the pass that would send the request.
    proxyServer.before('web', '', (req, res) => {
      transport(req as IncomingMessage, res as ServerResponse);
      return true;
    });
    // Without a listener an error event would end the process. Nothing of ours throws in there.
    proxyServer.on('error', (_error, _req, res) => {
      res?.destroy();
    });
  };
  return createProxyMiddleware({
    // An object is taken as it is; a URL or a string would be parsed again for every request.
    target: {
      protocol: backend.protocol,
      host: backend.hostname,
      port: backend.port || defaultPort(backend),
    },
    // Matches every path without parsing it, together with the empty `req.url` that `forward` sets.
    pathFilter: '',
    ejectPlugins: true,
    plugins: [plugin],
  });
}

function defaultPort({ protocol }: URL): string {
  return protocol === 'https:' ? '443' : '80';
}
