import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { findChromium, launchChromium } from '../support/launch-chromium.ts';

/** What a page's script got: `error` is all that a browser tells it of a response that it may not read. */
interface Fetched {
  readonly status?: number;
  readonly body?: string;
  readonly remaining?: string | null;
  readonly error?: string;
}

const program = await findChromium().catch(() => undefined);

if (program === undefined) {
  describe('Chromium', () => {
    it.todo('was left out: there is no chromium, and no apt-get as root to install it with');
  });
} else {
  describe('a key with allowed origins in Chromium', () => {
    let fleet: Fleet;
    let pages: Server;
    let browser: Browser;
    beforeAll(async () => {
      fleet = await startInProcessFleet(2, {}, (_req, res) => {
        res.setHeader('Content-Type', 'text/html');
        res.end('<p>from the backend</p>');
      });
      pages = createServer((_req, res) => res.setHeader('Content-Type', 'text/html').end('<p>a page</p>'));
      pages.listen(0, '127.0.0.1');
      await once(pages, 'listening');
      browser = await launchChromium();
    }, 300_000);
    afterAll(async () => {
      await browser?.close();
      pages?.close();
      pages?.closeAllConnections();
      await fleet?.stop();
    });

    const originOf = (name: string) => `http://${name}.localhost:${(pages.address() as AddressInfo).port}`;

    async function pageOf(origin: string): Promise<Page> {
      const page = await browser.newPage();
      await page.goto(origin);
      return page;
    }

    /** What `fetch` gives to a script of the page. Runs in the browser. */
    function fetchIn(page: Page, url: string, init: object): Promise<Fetched> {
      return page.evaluate(
        async ([to, options]) => {
          try {
            const response = await fetch(to, options);
            const remaining = response.headers.get('x-ratelimit-remaining');
            return { status: response.status, body: await response.text(), remaining };
          } catch (error) {
            return { error: String(error) };
          }
        },
        [url, init] as const,
      );
    }

    async function keyFor(...allowedOrigins: readonly string[]) {
      const { body } = await fleet.admin.call('POST', '/consumer-api-key/create', {
        name: 'page',
        allowedOrigins,
      });
      const headers = { authorization: `Bearer ${body.secret}`, 'content-type': 'application/json' };
      return { id: body.id as string, headers };
    }

    const unreadable = { error: 'TypeError: Failed to fetch' };

    it('works from an allowed page, preflight included, and from no other', async () => {
      const key = await keyFor(originOf('app'));
      const url = `${fleet.replicas[1]?.url}/orders`;
      const [app, other] = [await pageOf(originOf('app')), await pageOf(originOf('other'))];
      for (const method of ['GET', 'PUT', 'DELETE'])
        expect(await fetchIn(app, url, { method, headers: key.headers })).toMatchObject({
          status: 200,
          body: '<p>from the backend</p>',
          remaining: expect.stringMatching(/^99\d$/),
        });
      const reached = fleet.backendRequests();
      for (const method of ['GET', 'PUT', 'DELETE'])
        expect(await fetchIn(other, url, { method, headers: key.headers })).toEqual(unreadable);
      expect(fleet.backendRequests()).toBe(reached);
    });

    it('works from a page that another replica has just allowed, not from one removed', async () => {
      const key = await keyFor(originOf('first'));
      const url = `${fleet.replicas[1]?.url}/a`;
      const [first, second] = [await pageOf(originOf('first')), await pageOf(originOf('second'))];
      expect(await fetchIn(first, url, { headers: key.headers })).toMatchObject({ status: 200 });
      expect(await fetchIn(second, url, { headers: key.headers })).toEqual(unreadable);
      const changed = { allowedOrigins: [originOf('second')] };
      await fleet.admin.call('PATCH', `/consumer-api-key/${key.id}`, changed);
      expect(await fetchIn(second, url, { headers: key.headers })).toMatchObject({ status: 200 });
      expect(await fetchIn(first, url, { headers: key.headers })).toEqual(unreadable);
    });

    it('lets its page read why a request failed', async () => {
      const key = await keyFor(originOf('app'));
      const app = await pageOf(originOf('app'));
      const use = async () => {
        const { status, body = '' } = await fetchIn(app, `${fleet.replicas[1]?.url}/a`, {
          headers: key.headers,
        });
        return [status, JSON.parse(body).code];
      };
      await fleet.admin.call('PATCH', `/consumer-api-key/${key.id}`, { allowedIps: ['192.0.2.1'] });
      expect(await use()).toEqual([403, 'address_not_allowed']);
      await fleet.admin.call('PATCH', `/consumer-api-key/${key.id}`, { enabled: false });
      expect(await use()).toEqual([401, 'key_disabled']);
      await keyFor(originOf('app'));
      await fleet.admin.deleteKey(key.id);
      expect(await use()).toEqual([401, 'invalid_api_key']);
    });

    it('is rejected in a page without an origin, and in a page of the gateway', async () => {
      const gateway = fleet.replicas[1]?.url ?? '';
      const key = await keyFor(originOf('app'), gateway);
      const sandboxed = await browser.newPage();
      await sandboxed.goto('data:text/html,<p>a page</p>');
      expect(await fetchIn(sandboxed, `${gateway}/a`, { headers: key.headers })).toEqual(unreadable);
      const own = await pageOf(`${gateway}/`);
      const { status, body = '' } = await fetchIn(own, '/a', { headers: key.headers });
      expect([status, JSON.parse(body).code]).toEqual([403, 'origin_not_allowed']);
      const posted = await fetchIn(own, '/a', { method: 'POST', headers: key.headers, body: '{}' });
      expect(posted).toMatchObject({ status: 200 });
    });
  });
}
