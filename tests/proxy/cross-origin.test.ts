import { describe, expect, it } from '@jest/globals';
import { request } from 'undici';
import { BrowserPage } from './support/browser-page.ts';
import { plan } from './support/gateway.ts';
import { withGateway } from './support/with-gateway.ts';

const PAGE = 'https://app.example';
const OK =
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Total: 7\r\nX-Secret: s\r\nAccess-Control-Expose-Headers: X-Total\r\nConnection: close\r\n\r\nok';

describe.each([
  ['listed', [PAGE, 'http://localhost:5173']],
  ['any', ['*']],
] as const)('a page whose origin is allowed (%s)', (_how, corsAllowedOrigins) => {
  const stage = withGateway({ corsAllowedOrigins });
  const url = () => `http://127.0.0.1:${stage.gateway.port}/a`;
  const key = () => ({ authorization: `Bearer ${stage.gateway.secret}` });
  const page = new BrowserPage(PAGE);

  it.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'QUERY'])('may call with %s', async (method) => {
    stage.backend.respond(OK);
    const headers = { ...key(), 'content-type': 'application/json', 'x-customer-id': 'c', 'x-other': '1' };
    expect(await page.fetch(url(), { method, headers })).toMatchObject({ status: 200, body: 'ok' });
  });

  it('may read the limit and the headers that the backend exposes, and no others', async () => {
    stage.backend.respond(OK);
    const { headers } = await page.fetch(url(), { headers: key() });
    expect(headers).toMatchObject({ 'x-ratelimit-remaining': '999999', 'x-total': '7' });
    expect(headers).toHaveProperty('ratelimit');
    expect(headers).not.toHaveProperty('x-secret');
  });

  it('may read why it is rejected, and when to come again', async () => {
    expect(await page.fetch(url())).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': expect.anything() },
    });
    await stage.gateway.change({ plan: plan(1) });
    stage.backend.respond(OK);
    await page.fetch(url(), { headers: key() });
    const limited = await page.fetch(url(), { headers: key() });
    expect(limited).toMatchObject({
      status: 429,
      headers: { 'retry-after': expect.stringMatching(/^\d+$/) },
    });
    await stage.gateway.change({ plan: null });
    await stage.backend.stop();
    expect(await page.fetch(url(), { headers: key() })).toMatchObject({ status: 502 });
  });

  it('gets no cached response that was made for another origin', async () => {
    stage.backend.respond(OK);
    for (const headers of [key(), { ...key(), origin: 'https://other.example' }]) {
      const response = await request(url(), { headers });
      await response.body.dump();
      const always = response.headers['access-control-allow-origin'] === '*';
      expect(always || String(response.headers.vary).includes('Origin')).toBe(true);
    }
  });
});

describe('a page whose origin is not allowed', () => {
  const stage = withGateway({ corsAllowedOrigins: [PAGE] });
  it.each([
    'https://evil.example',
    'https://app.example.evil.example',
    'http://app.example',
    'https://app.example:8443',
    'https://APP.example',
    'null',
  ])('%s reads nothing, and its preflight changes nothing', async (origin) => {
    stage.backend.respond(OK);
    const page = new BrowserPage(origin);
    const url = `http://127.0.0.1:${stage.gateway.port}/a`;
    const headers = { authorization: `Bearer ${stage.gateway.secret}` };
    await expect(page.fetch(url, { method: 'DELETE', headers })).rejects.toThrow('the origin is not allowed');
    await expect(page.fetch(url)).rejects.toThrow('the origin is not allowed');
    expect(stage.backend.received).toBe('');
  });
});

describe('without allowed origins', () => {
  const stage = withGateway();
  it("nothing is added, and the backend's own responses to pages go through", async () => {
    stage.backend.respond(
      OK.replace('Connection', 'Access-Control-Allow-Origin: https://app.example\r\nConnection'),
    );
    const response = await request(`http://127.0.0.1:${stage.gateway.port}/a`, {
      headers: { authorization: `Bearer ${stage.gateway.secret}`, origin: PAGE },
    });
    await response.body.dump();
    expect(response.headers).toMatchObject({
      'access-control-allow-origin': PAGE,
      'access-control-expose-headers': 'X-Total',
    });
    expect(response.headers).not.toHaveProperty('vary');
  });
});
