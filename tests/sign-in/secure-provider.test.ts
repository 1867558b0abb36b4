import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { systemClock } from '../../src/platform/clock.ts';
import { IdentityProvider } from '../../src/sign-in/identity-provider.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';

const pem = (name: string) => readFileSync(new URL(`../support/tls/${name}`, import.meta.url), 'utf8');

/** Of this process, which trusts the certificates of the tests meanwhile. */
const trusted = getCACertificates('default');
let server: Server;
let issuer: URL;
/** What the metadata of the provider says beside the usual. */
let metadata: Record<string, string> = {};

beforeAll(async () => {
  setDefaultCACertificates([...trusted, pem('ca.pem')]);
  server = createServer({ cert: pem('localhost.pem'), key: pem('localhost-key.pem') }, (_req, res) => {
    const base = issuer.origin;
    const usual = {
      issuer: base,
      authorization_endpoint: `${base}/auth`,
      token_endpoint: `${base}/token`,
      jwks_uri: `${base}/keys`,
    };
    res.setHeader('Content-Type', 'application/json');
    res.end(JSON.stringify({ ...usual, ...metadata }));
  });
  issuer = new URL(`https://localhost:${await listenOnLoopback(server)}`);
});
afterAll(() => {
  setDefaultCACertificates(trusted);
  server?.close();
  server?.closeAllConnections();
});

/** Where a browser is sent, with this metadata. */
async function begin(changed: Record<string, string>): Promise<URL> {
  metadata = changed;
  const options = { clientId: 'tollgate', clientSecret: null, scopes: 'openid', claim: 'groups' };
  const log = pino({ level: 'silent' });
  const provider = new IdentityProvider({ ...options, issuer, clock: systemClock, log });
  const attempt = { state: 's', nonce: 'n', codeVerifier: 'v'.repeat(43), redirectUri: 'https://a.example' };
  return provider.authorizationUrl(attempt);
}

describe('A provider at https', () => {
  it('is used when its keys are at https', async () => {
    expect((await begin({})).origin).toBe(issuer.origin);
  });

  it('is not used when its keys are at http', async () => {
    await expect(begin({ jwks_uri: 'http://localhost/keys' })).rejects.toMatchObject({
      reason: 'response_invalid',
    });
  });
});
