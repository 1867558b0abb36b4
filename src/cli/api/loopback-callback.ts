import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const HOST = '127.0.0.1';
const PATH = '/callback';
const PAGE =
  '<!doctype html><meta charset="utf-8"><title>Tollgate</title><p>You can close this page, and go on in the terminal.</p>\n';

/** Where a browser of this machine brings the response of an identity provider to (RFC 8252, section 7.3). */
export interface LoopbackCallback {
  readonly redirectUri: string;
  /** Resolves with the query of the first callback that has the state of the attempt. Others are 404: any page can have the browser send one. */
  queryWith(state: string): Promise<string>;
  close(): void;
}

/** Listens on a free port of the loopback interface. */
export async function listenForCallback(): Promise<LoopbackCallback> {
  const query = Promise.withResolvers<string>();
  let expected: string | undefined;
  const server = createServer((req, res) => {
    const found = queryOf(req, authority);
    const isExpected = expected !== undefined && found?.get('state') === expected;
    respond(res, isExpected);
    if (isExpected) query.resolve(`?${found}`);
  }).listen(0, HOST);
  await once(server, 'listening');
  const authority = `${HOST}:${(server.address() as AddressInfo).port}`;
  return {
    redirectUri: `http://${authority}${PATH}`,
    queryWith: (state) => {
      expected = state;
      return query.promise;
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Undefined for a request that is no callback. Its `Host` must be this one: a name that leads here may belong to someone else. */
function queryOf(
  { method, url = '', headers }: IncomingMessage,
  authority: string,
): URLSearchParams | undefined {
  if (method !== 'GET' || headers.host !== authority) return undefined;
  const target = URL.parse(url, `http://${authority}`);
  return target?.pathname === PATH ? target.searchParams : undefined;
}

function respond(res: ServerResponse, isExpected: boolean): void {
  res.writeHead(isExpected ? 200 : 404, {
    'Content-Type': 'text/html',
    'Cache-Control': 'no-store',
    // The address of the page has a code.
    'Referrer-Policy': 'no-referrer',
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
    Connection: 'close',
  });
  res.end(isExpected ? PAGE : '');
}
