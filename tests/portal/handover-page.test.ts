import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { buildConsoleWhereOutdated } from '../support/console-build.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { launchChromium } from '../support/launch-chromium.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import {
  accessibilityFaults,
  asksBeforeLeaving,
  contentWhileLeft,
  focused,
  NARROWEST,
  openPage,
  overflow,
  translate,
} from './open-page.ts';

const SHOW = 'Show the secret';
/** After which the page no longer waits for the gateway. */
const TIMEOUT_MS = 30_000;

let fleet: Fleet;
let browser: Browser;
beforeAll(async () => {
  await buildConsoleWhereOutdated();
  fleet = await startInProcessFleet(1);
  browser = await launchChromium();
}, 300_000);
afterAll(async () => {
  await browser?.close();
  await fleet?.stop();
});

/** A dead link gets 410. */
const open = (url: string, colorScheme: 'light' | 'dark' = 'light') =>
  openPage(browser, url, { colorScheme, expected: /410/ });

async function makeLink(name: string, note: string): Promise<{ url: string; secret: string }> {
  const { id, secret } = await fleet.admin.makeKey(name);
  const body = { ttlSeconds: 3600, note };
  const made = await fleet.admin.call('POST', `/consumer-api-key/${id}/handover`, body);
  return { url: made.body.url, secret };
}

describe('the page of a hand-over link', () => {
  it('shows the secret on a click and once, says when it was used, and is accessible', async () => {
    const { url, secret } = await makeLink('Mobile app', '<img src=x onerror=alert(1)> for you');
    const { page, faults, requests } = await open(url);
    await page.getByText('<img src=x onerror=alert(1)> for you').waitFor();
    expect(await page.content()).not.toContain(secret);
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(await asksBeforeLeaving(page)).toBe(false);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await page.locator('[data-secret]').textContent()).toBe(secret);
    expect(await page.locator('[data-secret]').getAttribute('translate')).toBe('no');
    await until(() => asksBeforeLeaving(page));
    expect(await focused(page)).toBe('The secret of “Mobile app”');
    // A screen reader says the heading that has the focus, but not the secret by itself.
    expect(await page.locator('[aria-live=polite] [data-secret]').count()).toBe(0);
    // A phone that asks nothing reloads no page by a pull.
    expect(await page.evaluate('getComputedStyle(document.documentElement).overscrollBehaviorY')).toBe(
      'none',
    );
    expect(await accessibilityFaults(page)).toEqual([]);
    // The token is in the body of requests only.
    expect(requests.filter((request) => request.includes('tgh_'))).toEqual([]);
    await page.reload();
    await page.getByText(/^This link was used at .*If that was not you/).waitFor();
    expect(await page.content()).not.toContain(secret);
    expect(faults).toEqual([]);
  });

  it('keeps no secret for a browser that shows the page again after Back', async () => {
    const { url, secret } = await makeLink('Left', 'and come back to');
    const { page } = await open(url);
    await page.getByRole('button', { name: SHOW }).click();
    await page.getByText(secret).waitFor();
    expect(await contentWhileLeft(page)).not.toContain(secret);
    await page.getByText(/^This link was used at/).waitFor();
  });

  it('gives the focus to the heading of the secret as it appears', async () => {
    const { url } = await makeLink('Focused', 'at once');
    const { page } = await open(url);
    const button = page.getByRole('button', { name: SHOW });
    await button.focus();
    // An observer is called before the next frame, and before effects that wait for one.
    await page.evaluate(`new MutationObserver(() => {
      if (document.querySelector('[data-secret]')) window.focusedFirst ??= document.activeElement.textContent;
    }).observe(document.body, { childList: true, subtree: true })`);
    await button.press('Enter');
    await page.locator('[data-secret]').waitFor();
    expect(await page.evaluate('window.focusedFirst')).toBe('The secret of “Focused”');
  });

  it('fits on the narrowest phone, whatever the names are', async () => {
    const long = 'x'.repeat(255);
    const { url } = await makeLink(long, long);
    const { page } = await openPage(browser, url, {
      colorScheme: 'light',
      width: NARROWEST,
      expected: /410/,
    });
    const button = page.getByRole('button', { name: SHOW });
    await button.waitFor();
    expect(await overflow(page)).toBe(0);
    await button.click();
    await page.locator('[data-secret]').waitFor();
    expect(await overflow(page)).toBe(0);
  });

  it('says why there is nothing to show: a link used elsewhere meanwhile, and one that is unknown', async () => {
    const { url } = await makeLink('Raced', 'first come');
    const slow = await open(url, 'dark');
    await slow.page.getByRole('button', { name: SHOW }).waitFor();
    expect(await accessibilityFaults(slow.page)).toEqual([]);
    const fast = await open(url);
    await fast.page.getByRole('button', { name: SHOW }).click();
    await fast.page.locator('[data-secret]').waitFor();
    await slow.page.getByRole('button', { name: SHOW }).click();
    await slow.page.getByText(/^This link was used at/).waitFor();
    expect(await slow.page.locator('[data-secret]').count()).toBe(0);
    expect(await slow.page.locator('section:focus').count()).toBe(1);
    const cut = await open(url.slice(0, url.indexOf('#')));
    await cut.page.getByText(/the part after the # is missing/).waitFor();
    expect([slow.faults, fast.faults, cut.faults]).toEqual([[], [], []]);
  });

  it('says that the secret may be lost where a proxy has given the request up, also in translation', async () => {
    const { url } = await makeLink('Behind a proxy', 'patience');
    const { page } = await open(url);
    await page.route('**/reveal', async (route) => {
      await route.fetch();
      await route.fulfill({ status: 504, body: 'Gateway Timeout' });
    });
    await page.getByRole('button', { name: SHOW }).click();
    await page.getByText('The secret did not arrive. Try again: ').waitFor();
    await page.getByRole('heading', { name: 'Your API key' }).waitFor();
    await translate(page);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText(/^This link was used at/).waitFor();
    await page.getByRole('heading', { name: 'This link shows nothing' }).waitFor();
    expect(await page.getByText('The secret did not arrive').count()).toBe(0);
  });

  it('says that the secret may be lost where the gateway is silent, and asks again on a click', async () => {
    const { url } = await makeLink('Waited for', 'patience');
    const relay = await TcpRelay.start(portOf(url));
    try {
      const { page } = await open(relay.urlOf(url));
      const lost = page.getByText('The secret did not arrive. Try again: ');
      await page.getByRole('button', { name: SHOW }).waitFor();
      await page.clock.install();
      relay.silence();
      const asked = page.waitForRequest(/\/reveal$/);
      await page.getByRole('button', { name: SHOW }).click();
      await asked;
      await page.clock.fastForward(TIMEOUT_MS);
      await lost.waitFor();
      relay.pass();
      await page.getByRole('button', { name: 'Try again' }).click();
      await page.locator('section:focus').waitFor();
      // Whether the first request has used the link depends on how much of it the gateway gets.
      const used = page.getByText(/^This link was used at/);
      await page.getByRole('button', { name: SHOW }).or(used).waitFor();
    } finally {
      await relay.stop();
    }
  });
});
