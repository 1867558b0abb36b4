import { createServer } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect, it } from '@jest/globals';
import { signInAtProvider } from '../../src/cli/api/sign-in-at-provider.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';

it('A code that is not confirmed in time is said to have expired, and the gateway is not asked from then on', async () => {
  const device = {
    method: 'device',
    ticket: 't',
    userCode: 'A',
    verificationUri: 'https://login.example.com/',
  };
  let startedMs: number | undefined;
  const server = createServer((_req, res) => {
    res.setHeader('Content-Type', 'application/json');
    startedMs ??= performance.now();
    const isLate = performance.now() - startedMs >= 1000;
    if (isLate) res.writeHead(401).end(JSON.stringify({ error: 'too late', code: 'sign_in_rejected' }));
    else res.end(JSON.stringify({ ...device, expiresInS: 1, intervalS: 1 }));
  });
  const port = await listenOnLoopback(server);
  try {
    const url = `http://127.0.0.1:${port}`;
    const terminal = { stderr: new PassThrough(), environment: {} } as unknown as Terminal;
    await expect(signInAtProvider({ url, opensBrowser: false }, terminal)).rejects.toThrow(
      'The code has expired',
    );
  } finally {
    server.close();
    server.closeAllConnections();
  }
});
