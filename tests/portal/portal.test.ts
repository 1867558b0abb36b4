import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { buildConsoleWhereOutdated } from '../support/console-build.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { type RunningGateway, startGateway } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { until } from '../support/until.ts';

const PORTAL = '/tollgate/portal';
const SELF = '/tollgate/self';
const PUBLIC_URL = 'https://api.example.com';
/** Names and addresses that would be something else in HTML or in a script, if they were not written as text. */
const NAME = `A&B "x" </title><script>alert('1')</script> $& $1`;
const LOGO = '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0h9v9z"></path></svg>';

let fleet: Fleet;
let folder: string;
const started: RunningGateway[] = [];
beforeAll(async () => {
  await buildConsoleWhereOutdated();
  folder = await mkdtemp(join(tmpdir(), 'portal-'));
  await writeFile(join(folder, 'logo'), LOGO);
  fleet = await startInProcessFleet(1, {
    ...{ PORTAL: 'on', PORTAL_NAME: NAME, PORTAL_COLOR: '#FFCC00', PORTAL_LOGO_FILE: join(folder, 'logo') },
    ...{ PORTAL_DOCS_URL: 'https://docs.example.com/?a="b"', PORTAL_SUPPORT_URL: 'mailto:help@example.com' },
    PUBLIC_URL,
  });
}, 300_000);
afterAll(async () => {
  for (const gateway of started) await gateway.stop();
  await fleet?.stop();
  await rm(folder, { recursive: true });
});

/** A further replica of the same fleet with other settings. */
async function start(settings: Readonly<Record<string, string>>): Promise<RunningGateway> {
  const gateway = await startInProcess({ ...fleet.environment, ...settings });
  started.push(gateway);
  return gateway;
}

const get = (path: string, init: RequestInit = {}, gateway = fleet.replicas[0]) =>
  fetch(`${gateway?.url}${path}`, { redirect: 'manual', ...init });

/** What the gateway has written into the page. */
function factsOf(html: string): unknown {
  const text = /name="tollgate-portal" content="([^"]*)"/.exec(html)?.[1] ?? '';
  const entities = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&amp;': '&' };
  return JSON.parse(text.replaceAll(/&\w+;/g, (entity) => entities[entity as keyof typeof entities]));
}

describe('the portal', () => {
  it('is a page for anyone, with its brand as text, and under the policy of the other pages', async () => {
    const response = await get(PORTAL);
    const html = await response.text();
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'text/html; charset=utf-8',
    ]);
    expect(response.headers.get('content-security-policy')).toBe(
      "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
    );
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.get('referrer-policy')).toBe('no-referrer');
    expect(html).not.toContain('<script>');
    expect(html).toContain(
      `<title>A&amp;B &quot;x&quot; &lt;/title&gt;&lt;script&gt;alert('1')&lt;/script&gt; $&amp; $1</title>`,
    );
    expect(factsOf(html)).toEqual({
      ...{ name: NAME, hasLogo: true, docsUrl: 'https://docs.example.com/?a=%22b%22' },
      ...{ supportUrl: 'mailto:help@example.com', selfServicePath: SELF, publicUrl: PUBLIC_URL },
    });
  });

  it('serves what its page names, compressed and to be kept, and nothing else', async () => {
    const html = await (await get(PORTAL)).text();
    const files = [...html.matchAll(/(?:src|href)="\.\/(portal\/[^"]+)"/g)].map(([, file = '']) => file);
    expect(files).toContain('portal/brand.css');
    for (const file of files) {
      const { status, headers } = await get(`/tollgate/${file}`, { headers: { 'accept-encoding': 'br' } });
      expect([file, status]).toEqual([file, 200]);
      if (file.includes('/assets/')) {
        expect(headers.get('content-encoding')).toBe('br');
        expect(headers.get('cache-control')).toContain('immutable');
      }
    }
    for (const path of ['/nothing', '/assets/nothing.js', '/assets/portal.html', '/portal.html', '/logo/'])
      expect([path, (await get(PORTAL + path)).status]).toEqual([path, 404]);
    expect((await get(PORTAL, { method: 'POST' })).status).toBe(405);
    const slash = await get(`${PORTAL}/`);
    expect([slash.status, slash.headers.get('location')]).toEqual([308, '../portal']);
    expect((await get('/tollgate/%70ortal')).status).toBe(404);
    expect(fleet.backendRequests()).toBe(0);
  });

  it('shows a logo that runs and loads nothing, also when it is opened by itself', async () => {
    const response = await get(`${PORTAL}/logo`);
    expect(await response.text()).toBe(LOGO);
    expect(response.headers.get('content-type')).toBe('image/svg+xml');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; .*sandbox$/);
    // As the colour: a brand may change with each start.
    for (const { headers } of [response, await get(`${PORTAL}/brand.css`)])
      expect(headers.get('cache-control')).toBe('public, max-age=300');
  });

  it('is in the log and the metrics as the operation "portal", and what it asks as self-service', async () => {
    const gateway = await startGateway(fleet.environment);
    started.push(gateway);
    for (const path of [PORTAL, `${PORTAL}/logo`, SELF]) await (await get(path, {}, gateway)).text();
    const lines = () => gateway.output().match(/^.*"msg":"request".*$/gm) ?? [];
    await until(() => lines().length === 3);
    const operations = new Map(lines().map((line) => [JSON.parse(line).path, JSON.parse(line).operation]));
    expect(Object.fromEntries(operations)).toEqual({
      [PORTAL]: 'portal',
      [`${PORTAL}/logo`]: 'portal',
      [SELF]: 'showOwnKey',
    });
    const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
    expect(metrics).toContain('tollgate_management_requests_total{outcome="served",operation="portal"} 2');
  });

  it.each([
    ['a script', LOGO.replace('<path', '<script/><path'), 'the SVG must not have the element <script>'],
    ['too much', LOGO.padEnd(64 * 1024 + 1), 'the file has more than 64 KB'],
    ['another type', 'GIF89a', 'the file is neither SVG nor PNG'],
  ])('does not start with a logo of %s', async (_what, content, why) => {
    await writeFile(join(folder, 'faulty'), content);
    await expect(start({ PORTAL_LOGO_FILE: join(folder, 'faulty') })).rejects.toMatchObject({
      faults: [`PORTAL_LOGO_FILE: ${why}`],
    });
  });

  it('is on the public port alone where management has its own, and asks where self-service is', async () => {
    const gateway = await start({ ADMIN_PORT: '0', SELF_SERVICE_PATH: '/account/me', PORTAL_LOGO_FILE: '' });
    const html = await (await get(PORTAL, {}, gateway)).text();
    expect(factsOf(html)).toMatchObject({ selfServicePath: '/account/me', hasLogo: false });
    const { secret } = await fleet.admin.makeKey('moved');
    const headers = { authorization: `Bearer ${secret}` };
    expect((await get('/account/me', { headers }, gateway)).status).toBe(200);
    expect((await get(`${PORTAL}/logo`, { headers }, gateway)).status).toBe(404);
    expect((await get(`${PORTAL}/nothing`, { headers }, gateway)).status).toBe(404);
    expect((await get('/tollgate/%70ortal', { headers }, gateway)).status).toBe(404);
    expect(await (await get('/tollgate/portals', { headers }, gateway)).text()).toBe('ok');
    const adminPort = /"adminPort":(\d+)/.exec(gateway.output())?.[1];
    expect((await fetch(`http://127.0.0.1:${adminPort}${PORTAL}`)).status).toBe(404);
  });

  it('is a path like any other while it is off, and no file of it is read', async () => {
    const off = { PORTAL: 'off', PORTAL_LOGO_FILE: join(folder, 'missing') };
    const gateway = await start({ ...off, ADMIN_PORT: '0', SELF_SERVICE_PATH: '' });
    const { secret } = await fleet.admin.makeKey('off');
    const response = await get(PORTAL, { headers: { authorization: `Bearer ${secret}` } }, gateway);
    expect(await response.text()).toBe('ok');
    expect((await get(PORTAL, {}, gateway)).status).toBe(401);
    expect((await get(PORTAL, {}, await start(off))).status).toBe(404);
  });
});

describe('a key with allowed origins', () => {
  const own = { 'sec-fetch-site': 'same-origin' };
  let secret: string;
  beforeAll(async () => {
    const body = { name: 'page', allowedOrigins: ['https://app.example.com'], selfService: ['rotate'] };
    secret = (await fleet.admin.call('POST', '/consumer-api-key/create', body)).body.secret;
  });

  const ask = async (path: string, headers: Record<string, string>, init: RequestInit = {}) => {
    for (;;) {
      const response = await get(path, {
        ...init,
        headers: { authorization: `Bearer ${secret}`, ...headers },
      });
      if (response.status !== 429) return response;
      await response.text();
    }
  };

  it('is shown by a page of the gateway, which is given no right of another origin', async () => {
    for (const headers of [own, { origin: PUBLIC_URL }]) {
      const response = await ask(SELF, headers);
      expect([headers, response.status]).toEqual([headers, 200]);
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
    }
  });

  it('is not shown by another page, whatever it says, and not used for the backend by any', async () => {
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'none' },
    ]) {
      const response = await ask(SELF, headers);
      expect([headers, response.status]).toEqual([headers, 403]);
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
    }
    for (const headers of [own, { origin: PUBLIC_URL }])
      expect((await ask('/orders', headers)).status).toBe(403);
  });

  it('still may be used only from its addresses', async () => {
    const body = { name: 'page', allowedOrigins: ['https://app.example.com'], allowedIps: ['192.0.2.1'] };
    const made = await fleet.admin.call('POST', '/consumer-api-key/create', body);
    const response = await get(SELF, { headers: { ...own, authorization: `Bearer ${made.body.secret}` } });
    expect([response.status, await response.json()]).toMatchObject([403, { code: 'address_not_allowed' }]);
  });
});
