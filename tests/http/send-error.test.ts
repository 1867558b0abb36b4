import { createServer } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { sendError } from '../../src/http/errors/send-error.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';

describe('the response to an error', () => {
  it.each(['{"error":"plain"}', '{"error":"Größe – 大きさ 😀"}'])(
    'has the body %s, byte for byte',
    async (body) => {
      const server = createServer((_req, res) => sendError(res, { status: 400, headers: {}, body }));
      const port = await listenOnLoopback(server);
      try {
        const response = await fetch(`http://127.0.0.1:${port}/`);
        expect(response.headers.get('content-length')).toBe(String(Buffer.byteLength(body)));
        expect(await response.text()).toBe(body);
      } finally {
        server.closeAllConnections();
        server.close();
      }
    },
  );
});
