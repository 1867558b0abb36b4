import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Admin } from '../support/admin.ts';
import { ENCRYPTION_KEY, ROOT_TOKEN, type RunningGateway, startGateway } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { createMigratedDatabase, type TestDatabase } from '../support/stores.ts';

const certificate = (name: string) => join(import.meta.dirname, '../support/tls', name);

interface Seen {
  readonly serverName: string | false | null;
  readonly host: string | undefined;
  readonly forwardedHost: unknown;
  readonly url: string | undefined;
}

let backend: Server;
let database: TestDatabase;
let port: number;
const seen: Seen[] = [];

beforeAll(async () => {
  database = await createMigratedDatabase();
  const options = {
    cert: readFileSync(certificate('localhost.pem')),
    key: readFileSync(certificate('localhost-key.pem')),
  };
  backend = createServer(options, (req, res) => {
    const { servername } = req.socket as TLSSocket & { servername: string | false | null };
    seen.push({
      serverName: servername,
      host: req.headers.host,
      forwardedHost: req.headers['x-forwarded-host'],
      url: req.url,
    });
    res.end('over TLS');
  });
  backend.listen(0, '127.0.0.1');
  await once(backend, 'listening');
  port = (backend.address() as AddressInfo).port;
});
afterAll(async () => {
  backend.closeAllConnections();
  backend.close();
  await database.drop();
});

async function ask(
  start: (environment: Readonly<Record<string, string>>) => Promise<RunningGateway>,
): Promise<{ readonly status: number; readonly text: string; readonly url: string }> {
  const BACKEND_URL = `https://localhost:${port}/base/`;
  const gateway = await start({ BACKEND_URL, DATABASE_URL: database.url, ROOT_TOKEN, ENCRYPTION_KEY });
  try {
    const { secret } = await new Admin(gateway.url).makeKey('over TLS');
    const response = await fetch(`${gateway.url}/a//b?c=%20d`, {
      headers: { authorization: `Bearer ${secret}` },
    });
    return { status: response.status, text: await response.text(), url: gateway.url };
  } finally {
    await gateway.stop();
  }
}

describe('an HTTPS backend', () => {
  it('gets its own name in SNI and Host, and the base path before the path as it came', async () => {
    const trusting = { NODE_EXTRA_CA_CERTS: certificate('ca.pem') };
    const response = await ask((environment) => startGateway({ ...environment, ...trusting }));
    expect(response).toMatchObject({ status: 200, text: 'over TLS' });
    expect(seen).toEqual([
      {
        serverName: 'localhost',
        host: `localhost:${port}`,
        forwardedHost: new URL(response.url).host,
        url: '/base/a//b?c=%20d',
      },
    ]);
  });

  it('whose certificate is not trusted is a 502 that does not show the URL', async () => {
    const before = seen.length;
    const { status, text } = await ask(startInProcess);
    expect([status, JSON.parse(text).code]).toEqual([502, 'bad_gateway']);
    expect(text).not.toContain(String(port));
    expect(seen.length).toBe(before);
  });
});
