import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { CLIENT_ID, CLIENT_SECRET, TestBrowser, TestProvider } from './test-provider.ts';

let provider: TestProvider;
let fleet: Fleet;
let adminPort: number;
let publicPort: number;
let origin: string;
/** The cookie of a session, as a browser sends it. */
let cookie: string;

beforeAll(async () => {
  adminPort = await freePort();
  origin = `http://127.0.0.1:${adminPort}`;
  provider = await TestProvider.start({ redirectUris: [`${origin}/tollgate/sign-in/callback`] });
  fleet = await startInProcessFleet(1, {
    ...{ ADMIN_PORT: `${adminPort}`, PUBLIC_ADMIN_URL: origin, PORTAL: 'on' },
    ...{ OIDC_ISSUER: provider.issuer, OIDC_CLIENT_ID: CLIENT_ID, OIDC_CLIENT_SECRET: CLIENT_SECRET },
    ...{ OIDC_SCOPES: 'openid profile email groups', OIDC_SCOPES_MAP: '{"admins": ["all"]}' },
  });
  publicPort = Number(new URL(fleet.replicas[0]?.url ?? '').port);
  const browser = new TestBrowser();
  await browser.open(`${origin}/tollgate/sign-in`, (url) => url.startsWith(`${origin}/tollgate/console`));
  cookie = browser.cookiesOf(origin);
});

afterAll(async () => {
  await fleet?.stop();
  await provider?.stop();
});

/** The response to a request, which is sent in these parts, each once the one before is sent. */
async function exchange(port: number, parts: readonly string[]): Promise<string> {
  const peer = await RawPeer.connect(port);
  for (const part of parts) {
    peer.send(part);
    await new Promise(setImmediate);
  }
  const response = await peer.ended();
  peer.destroy();
  return response;
}

const statusOf = (response: string) => Number(response.split(' ', 2)[1]);
const head = (line: string, headers: readonly string[]) =>
  [`${line} HTTP/1.1`, 'Host: 127.0.0.1', 'Connection: close', ...headers, '', ''].join('\r\n');

describe('A request to sign in', () => {
  it('means the same wherever it is split', async () => {
    const callback = head('GET /tollgate/sign-in/callback?code=c&state=s', [
      'Cookie: a=1; __Host-tollgate-sign-in=x',
    ]);
    const responses = await Promise.all(
      Array.from(callback, (_byte, at) =>
        exchange(
          adminPort,
          [callback.slice(0, at), callback.slice(at)].filter((part) => part !== ''),
        ),
      ),
    );
    const outcomes = responses.map((response) => [
      statusOf(response),
      /signIn=(\w+)/.exec(response)?.[1],
      response.includes('\r\nSet-Cookie: __Host-tollgate-sign-in=; Path=/; Max-Age=0;'),
    ]);
    expect(new Set(outcomes.map((each) => each.join()))).toEqual(new Set(['303,not_started,true']));
  });

  it.each([
    ['without a length', [], '', 400],
    ['with an empty body', ['Content-Type: application/json', 'Content-Length: 0'], '', 400],
    ['of a form', ['Content-Type: application/x-www-form-urlencoded', 'Content-Length: 3'], 'a=b', 415],
    [
      'with two lengths',
      ['Content-Type: application/json', 'Content-Length: 2', 'Transfer-Encoding: chunked'],
      '2\r\n{}\r\n0\r\n\r\n',
      400,
    ],
  ])('%s begins nothing', async (_what, headers, body, status) => {
    for (const path of ['/tollgate/sign-in/command', '/tollgate/sign-in/command/finish'])
      expect(statusOf(await exchange(adminPort, [head(`POST ${path}`, headers), body]))).toBe(status);
  });
});

describe('The cookie of a session', () => {
  const whoami = async (lines: readonly string[]) =>
    statusOf(await exchange(adminPort, [head('GET /tollgate/whoami', lines)]));
  const own = () => [`Origin: ${origin}`, 'Tollgate-Console: 1'];

  it.each<[string, () => readonly string[], number]>([
    ['as a browser sends it', () => [`Cookie: ${cookie}`, ...own()], 200],
    [
      'in any case of the headers',
      () => [`cOOKIE: ${cookie}`, ...own().map((line) => line.replace(/^\w+/, (name) => name.toUpperCase()))],
      200,
    ],
    [
      'behind 15 000 characters of another',
      () => [`Cookie: a=${'x'.repeat(15_000)}; ${cookie}`, ...own()],
      200,
    ],
    ['twice with different values', () => [`Cookie: ${cookie}; __Host-tollgate=tgs_x`, ...own()], 400],
    ['in two lines', () => [`Cookie: __Host-tollgate=x`, `Cookie: ${cookie}`, ...own()], 400],
    ['in quotes', () => [`Cookie: ${cookie.replace('=', '="')}"`, ...own()], 401],
    ['with bytes beyond ASCII', () => [`Cookie: ${cookie}\xff`, ...own()], 401],
    ['of 8 000 characters', () => [`Cookie: ${cookie}${'x'.repeat(8000)}`, ...own()], 401],
    ['beyond the longest head', () => [`Cookie: a=${'x'.repeat(70_000)}; ${cookie}`, ...own()], 431],
    ['under the name in another case', () => [`Cookie: ${cookie.toUpperCase()}`, ...own()], 401],
    ['from a sandboxed page', () => [`Cookie: ${cookie}`, 'Origin: null', 'Tollgate-Console: 1'], 403],
    ['with a second origin', () => [`Cookie: ${cookie}`, ...own(), 'Origin: https://evil.example.com'], 403],
    ['with an empty origin', () => [`Cookie: ${cookie}`, 'Origin:', 'Tollgate-Console: 1'], 403],
    ['with an empty credential', () => [`Cookie: ${cookie}`, ...own(), 'Authorization:'], 401],
  ])('%s', async (_what, lines, status) => {
    expect(await whoami(lines())).toBe(status);
  });
});

describe.each([
  ['/tollgate/portal', 401],
  ['/tollgate/self/handover', 404],
])('The page at %s', (path, elsewhere) => {
  const [, name = ''] = path.split('/tollgate/');

  it('is at one path, however another is written', async () => {
    const get = async (target: string) => statusOf(await exchange(publicPort, [head(`GET ${target}`, [])]));
    const same = [path, `${path}?x=1`, `http://other.example.com${path}`];
    expect(await Promise.all(same.map(get))).toEqual(same.map(() => 200));
    const ambiguous = [
      ...[`/tollgate/./${name}`, `/tollgate/x/../${name}`, `/tollgate/%2E/${name}`, `${path}%00`],
      ...[`/tollgate\\${name}`, `${path}#x`, `${path}/../../v1`, `${path}/assets/../../whoami`],
    ];
    expect(await Promise.all(ambiguous.map(get))).toEqual(ambiguous.map(() => 400));
    const disguised = [
      ...[`/tollgate//${name}`, `//tollgate/${name}`, `/%74ollgate/${name}`, `/tollgate%2f${name}`],
      ...[`${path}%2f`, `${path}//`, `/tollgate/%${name.charCodeAt(0).toString(16)}${name.slice(1)}`],
    ];
    expect(await Promise.all(disguised.map(get))).toEqual(disguised.map(() => 404));
    // Paths like any other, which need a key, or paths of self-service that do not exist.
    const others = [`${path};x=1`, `${path}%20`, `${path}.html`];
    expect(await Promise.all(others.map(get))).toEqual(others.map(() => elsewhere));
    expect(await get(path.toUpperCase())).toBe(401);
  });

  it('is not for POST, with or without a length', async () => {
    for (const headers of [
      [],
      ['Content-Length: 0'],
      ['Content-Type: application/json', 'Content-Length: 0'],
    ])
      expect(statusOf(await exchange(publicPort, [head(`POST ${path}`, headers)]))).toBe(405);
  });
});
