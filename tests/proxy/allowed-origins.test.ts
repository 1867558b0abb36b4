import { describe, expect, it } from '@jest/globals';
import { request } from 'undici';
import { OriginList } from '../../src/keys/origin-list.ts';
import { AddressList } from '../../src/platform/address-list.ts';
import { until } from '../support/until.ts';
import { BrowserPage } from './support/browser-page.ts';
import { plan } from './support/gateway.ts';
import { type Stage, withGateway } from './support/with-gateway.ts';

const PAGE = 'https://app.example';
const OTHER = 'https://other.example';
const OK =
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nAccess-Control-Allow-Origin: https://backend.example\r\nConnection: close\r\n\r\nok';
const UPGRADE = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: abc'];
const SWITCHES =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: xyz\r\n\r\n';

/** The response to a request with the first key, and whether the page `origin` may read it. */
async function responseTo(stage: Stage, headers: Readonly<Record<string, string>>) {
  const response = await request(`http://127.0.0.1:${stage.gateway.port}/a`, {
    headers: { authorization: `Bearer ${stage.gateway.secret}`, ...headers },
  });
  const text = await response.body.text();
  return {
    status: response.statusCode,
    code: text === 'ok' ? undefined : JSON.parse(text).code,
    allowed: response.headers['access-control-allow-origin'],
    vary: response.headers.vary,
  };
}

function preflight(stage: Stage, origin: string, headers: Readonly<Record<string, string>> = {}) {
  return request(`http://127.0.0.1:${stage.gateway.port}/a`, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'PUT', ...headers },
  }).then(async (response) => {
    await response.body.dump();
    return [response.statusCode, response.headers['access-control-allow-origin']];
  });
}

describe.each([
  ['no origin', []],
  ['the origin of another page', [OTHER]],
  ['any origin', ['*']],
] as const)('a key with allowed origins, where the setting allows %s', (_what, corsAllowedOrigins) => {
  const stage = withGateway({ corsAllowedOrigins });
  const url = () => `http://127.0.0.1:${stage.gateway.port}/a`;
  const key = () => ({ authorization: `Bearer ${stage.gateway.secret}`, 'content-type': 'application/json' });
  const page = new BrowserPage(PAGE);

  it('is used by their pages, which may read the limit', async () => {
    await stage.gateway.allowOrigins([PAGE]);
    stage.backend.respond(OK);
    const response = await page.fetch(url(), { method: 'PUT', headers: key() });
    expect(response).toMatchObject({ status: 200, body: 'ok' });
    expect(response.headers).toHaveProperty('ratelimit');
  });

  it('is 403 from other pages, which can not read why; it is free, and a failure', async () => {
    await stage.gateway.change({ plan: plan(1) });
    await stage.gateway.allowOrigins([PAGE]);
    for (const origin of [
      OTHER,
      'null',
      'https://app.example.evil.example',
      'http://app.example',
      'https://APP.example',
    ])
      expect(await responseTo(stage, { origin })).toEqual({
        status: 403,
        code: 'origin_not_allowed',
        allowed: undefined,
        vary: 'Origin',
      });
    expect(stage.backend.received).toBe('');
    await until(() => stage.gateway.recorded.length === 5);
    expect(stage.gateway.recorded[0]).toMatchObject({ keyId: 'key_one', status: 403, successful: false });
    expect(stage.gateway.observed[0]).toMatchObject({
      outcome: 'forbidden',
      errorCode: 'origin_not_allowed',
    });
    stage.backend.respond(OK);
    expect(await responseTo(stage, { origin: PAGE })).toMatchObject({ status: 200, allowed: PAGE });
  });

  it('needs an origin from a browser, and none from elsewhere', async () => {
    await stage.gateway.allowOrigins([PAGE]);
    stage.backend.respond(OK);
    for (const site of ['cross-site', 'same-site', 'same-origin', 'none'])
      expect(await responseTo(stage, { 'sec-fetch-site': site })).toMatchObject({
        status: 403,
        code: 'origin_not_allowed',
      });
    expect(await responseTo(stage, {})).toMatchObject({ status: 200, vary: 'Origin' });
  });

  it('lets its pages read every error', async () => {
    await stage.gateway.change({ plan: plan(1) });
    await stage.gateway.allowOrigins([PAGE]);
    stage.backend.respond(OK);
    const use = async (headers = key()) => (await page.fetch(url(), { headers })).status;
    expect([await use(), await use()]).toEqual([200, 429]);
    await stage.gateway.change({ plan: null });
    await stage.backend.stop();
    expect(await use()).toBe(502);
    await stage.gateway.change({
      restrictions: { addresses: new AddressList(['192.0.2.1']), origins: new OriginList([PAGE]) },
    });
    expect(await use()).toBe(403);
    await stage.gateway.change({ enabled: false });
    expect(await use()).toBe(401);
    await stage.gateway.change({ enabled: true, expiresAtMs: 1 });
    expect(await use()).toBe(401);
    expect(await use({ ...key(), authorization: 'Bearer tg_wrong' })).toBe(401);
    const { authorization: _none, ...without } = key();
    expect((await page.fetch(url(), { headers: without })).status).toBe(401);
  });

  it('that is deleted is 401, which pages may read that another key allows', async () => {
    await stage.gateway.allowOrigins([PAGE]);
    await stage.gateway.allowOrigins([PAGE], stage.gateway.otherSecret);
    stage.backend.respond(OK);
    await page.fetch(url(), { headers: key() });
    await stage.gateway.delete();
    expect((await page.fetch(url(), { headers: key() })).status).toBe(401);
    await stage.gateway.delete(stage.gateway.otherSecret);
    const allowed = corsAllowedOrigins.some((origin) => origin === '*') ? '*' : undefined;
    expect(await responseTo(stage, { origin: PAGE })).toMatchObject({ status: 401, allowed });
  });

  it.each([
    ['hears of changes', false],
    ['hears of none', true],
  ])('follows every change with the next request, if the replica %s', async (_told, isFeedSilent) => {
    stage.gateway.isFeedSilent = isFeedSilent;
    stage.backend.respond(OK);
    const bySetting = (await responseTo(stage, { origin: PAGE })).allowed;
    const seen: unknown[] = [];
    for (const entries of [[OTHER], [PAGE], ['https://*.other.example'], null, [OTHER], [OTHER, PAGE]]) {
      await stage.gateway.allowOrigins(entries);
      const { status, allowed } = await responseTo(stage, { origin: PAGE });
      seen.push([status, allowed]);
    }
    const [no, yes] = [
      [403, undefined],
      [200, PAGE],
    ];
    expect(seen).toEqual([no, yes, no, [200, bySetting], no, yes]);
  });

  it('whose new origin can not be read is 503, which the page may read', async () => {
    stage.gateway.isFeedSilent = true;
    await stage.gateway.allowOrigins([PAGE]);
    stage.backend.respond(OK);
    await page.fetch(url(), { headers: key() });
    await stage.gateway.change({ plan: plan(7) });
    stage.gateway.keyStore.isDown = true;
    expect((await page.fetch(url(), { headers: key() })).status).toBe(503);
    const other = { ...key(), authorization: `Bearer ${stage.gateway.otherSecret}` };
    expect((await page.fetch(url(), { headers: other })).status).toBe(503);
  });

  it('is not found by several origins in one request', async () => {
    await stage.gateway.allowOrigins([PAGE]);
    for (const lines of [
      [`Origin: ${PAGE}`, `Origin: ${PAGE}`],
      [`Origin: ${OTHER}`, `Origin: ${PAGE}`],
      [`Origin: ${PAGE} ${PAGE}`],
      ['Origin:'],
      ['Origin: https://*.example'],
    ]) {
      const client = await stage.gateway.send(stage.gateway.head('GET /', 'Connection: close', ...lines));
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 403 .*"origin_not_allowed"/s);
    }
  });

  it('is judged the same in HTTP/1.0 without a Host', async () => {
    await stage.gateway.allowOrigins([PAGE]);
    stage.backend.respond(OK);
    const responses = [OTHER, PAGE].map(async (origin) => {
      const client = await stage.gateway.send(
        `GET /a HTTP/1.0\r\nAuthorization: Bearer ${stage.gateway.secret}\r\nOrigin: ${origin}\r\n\r\n`,
      );
      return (await client.ended()).slice(9, 12);
    });
    expect(await Promise.all(responses)).toEqual(['403', '200']);
  });

  describe('with upgrades', () => {
    const upgrade = (...lines: readonly string[]) => {
      stage.backend.respond(SWITCHES);
      return stage.gateway.send(stage.gateway.head('GET /chat', ...UPGRADE, ...lines));
    };

    it('is 403 from other pages', async () => {
      await stage.gateway.allowOrigins([PAGE]);
      for (const line of [`Origin: ${OTHER}`, 'Sec-Fetch-Site: cross-site'])
        expect(await (await upgrade(line)).ended()).toMatch(/^HTTP\/1\.1 403 .*"origin_not_allowed"/s);
      expect(stage.backend.connections).toHaveLength(0);
    });

    it('loses those that are open when their page is allowed no longer', async () => {
      await stage.gateway.allowOrigins([PAGE]);
      const client = await upgrade(`Origin: ${PAGE}`);
      await client.until((text) => text.includes('\r\n\r\n'));
      expect(client.text).toContain(`\r\nAccess-Control-Allow-Origin: ${PAGE}\r\n`);
      await stage.gateway.allowOrigins([OTHER]);
      await client.ended();
    });
  });
});

describe('a preflight', () => {
  const stage = withGateway();

  it('is allowed for the origins of every key, as soon as it has them', async () => {
    expect(await preflight(stage, PAGE)).toEqual([401, undefined]);
    await stage.gateway.allowOrigins([PAGE]);
    await stage.gateway.allowOrigins(['https://*.example.org'], stage.gateway.otherSecret);
    expect(await preflight(stage, PAGE)).toEqual([204, PAGE]);
    expect(await preflight(stage, 'https://a.example.org')).toEqual([204, 'https://a.example.org']);
    for (const origin of [OTHER, 'null', 'https://example.org', 'https://*.example.org'])
      expect(await preflight(stage, origin)).toEqual([401, undefined]);
    await stage.gateway.allowOrigins(null);
    await until(async () => (await preflight(stage, PAGE))[0] === 401);
    expect(stage.backend.received).toBe('');
    expect(stage.gateway.recorded).toEqual([]);
  });

  it('of a known page is allowed without the record store; of another it is 503', async () => {
    await stage.gateway.allowOrigins([PAGE]);
    await preflight(stage, PAGE);
    stage.gateway.keyStore.isDown = true;
    expect(await preflight(stage, PAGE)).toEqual([204, PAGE]);
    expect(await preflight(stage, OTHER)).toEqual([503, undefined]);
  });

  it('of a page that is not looked up in time is 503, or allowed if it is known', async () => {
    await stage.gateway.allowOrigins([PAGE]);
    await preflight(stage, PAGE);
    stage.gateway.keyStore.hold();
    expect(await preflight(stage, OTHER)).toEqual([503, undefined]);
    expect(await preflight(stage, PAGE)).toEqual([204, PAGE]);
    stage.gateway.keyStore.release();
  });

  it('whose page has gone, or with headers that can not be allowed, disturbs no other', async () => {
    await stage.gateway.allowOrigins([PAGE]);
    stage.gateway.keyStore.delayMs = 50;
    const head = (...lines: readonly string[]) =>
      ['OPTIONS /a HTTP/1.1', 'Host: a', `Origin: ${PAGE}`, ...lines, 'Connection: close', '', ''].join(
        '\r\n',
      );
    const gone = await stage.gateway.send(head('Access-Control-Request-Method: PUT'));
    gone.destroy();
    const odd = await stage.gateway.send(
      Buffer.from(
        head('Access-Control-Request-Method: \xff\x80', 'Access-Control-Request-Headers: \t\xe9'),
        'latin1',
      ),
    );
    expect(await preflight(stage, PAGE)).toEqual([204, PAGE]);
    expect(await odd.ended()).toMatch(/^HTTP\/1\.1 204 /);
    expect(stage.gateway.faults).toEqual([]);
  });

  it('that carries a key is a request like any other', async () => {
    await stage.gateway.allowOrigins([PAGE]);
    stage.backend.respond(OK);
    const authorization = `Bearer ${stage.gateway.secret}`;
    expect(await preflight(stage, PAGE, { authorization })).toEqual([200, PAGE]);
    expect(stage.backend.received).toMatch(/^OPTIONS /);
  });
});

describe('a key without allowed origins', () => {
  const stage = withGateway();
  it('is used by any page, and nothing is added or changed', async () => {
    await stage.gateway.allowOrigins([PAGE], stage.gateway.otherSecret);
    stage.backend.respond(OK);
    expect(await responseTo(stage, { origin: PAGE, 'sec-fetch-site': 'cross-site' })).toEqual({
      status: 200,
      code: undefined,
      allowed: 'https://backend.example',
      vary: undefined,
    });
  });
});
