import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Page, Request } from 'playwright-core';
import { buildConsoleWhereOutdated } from '../support/console-build.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { launchChromium } from '../support/launch-chromium.ts';
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

let fleet: Fleet;
let browser: Browser;
beforeAll(async () => {
  await buildConsoleWhereOutdated();
  fleet = await startInProcessFleet(1, {
    ...{ PORTAL: 'on', PORTAL_NAME: 'Acme API', PORTAL_COLOR: '#ffcc00' },
    ...{ PORTAL_DOCS_URL: 'https://docs.example.com/', PORTAL_SUPPORT_URL: 'mailto:help@example.com' },
  });
  browser = await launchChromium();
}, 300_000);
afterAll(async () => {
  await browser?.close();
  await fleet?.stop();
});

/** Wrong keys get 401, waits for a turn 429, and a file that can't be made 503. */
const open = (
  colorScheme: 'light' | 'dark',
  { width = 390, url = fleet.replicas[0]?.url, locale = 'en-US' } = {},
) =>
  openPage(browser, `${url}/tollgate/portal`, {
    colorScheme,
    width,
    locale,
    expected: /status of (401|429|503)/,
  });

async function signIn(page: Page, secret: string): Promise<void> {
  await page.getByLabel('API key', { exact: true }).fill(secret);
  await page.keyboard.press('Enter');
}

/** All that the browser keeps of the page after it. */
const stored = (page: Page) =>
  page.evaluate(
    'JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href, history.state])',
  );

async function makeKey(name: string, fields: object = {}): Promise<{ id: string; secret: string }> {
  return (await fleet.admin.call('POST', '/consumer-api-key/create', { name, ...fields })).body;
}

async function use(secret: string, path: string): Promise<void> {
  const headers = { authorization: `Bearer ${secret}` };
  await (await fetch(`${fleet.replicas[0]?.url}${path}`, { headers })).text();
}

describe('the portal', () => {
  it('shows a consumer what their key may do and has done, and no one else', async () => {
    await fleet.admin.call('POST', '/rate-limit/create', {
      ...{ rateLimitId: 'silver', description: '', limit: 3, period: 'day' },
      additionalLimits: [{ limitId: 'burst', limit: 2, period: 'hour', mode: 'shadow' }],
    });
    const fields = { rateLimitId: 'silver', allowedOrigins: ['https://app.example.com'] };
    const { id, secret } = await makeKey('Mobile <b>app</b>', fields);
    for (let request = 0; request < 4; request += 1) await use(secret, '/v1/orders');
    await until(async () => (await fleet.admin.detail(id)).usage.totalRequests === 4);
    const { page, faults, requests } = await open('light');
    expect(await accessibilityFaults(page)).toEqual([]);
    for (const wrong of ['no key', `tg_${'0'.repeat(36)}`]) {
      await signIn(page, wrong);
      await page.getByText('This is not a valid key. Check that you copied all of it.').waitFor();
    }
    await signIn(page, ` ${secret} `);
    await page.getByRole('heading', { name: 'Mobile <b>app</b>' }).waitFor();
    await page.getByText('Your plan “silver” allows 3 a day.').waitFor();
    await page.getByText('0 of 3 left').waitFor();
    expect(await page.getByText(/burst|of 2 left/).count()).toBe(0);
    await page.getByText(/^Resets in 2\d hours, at /).waitFor();
    await page.getByText('The key does not expire.').waitFor();
    await page.getByText('4 requests: 1 time limited, 0 failed for another reason.').waitFor();
    await page.getByText('1 request got 429.').waitFor();
    await page.getByRole('row', { name: '/v1/orders 3 1 0' }).waitFor();
    expect(await page.getByRole('heading', { name: 'New secret' }).count()).toBe(0);
    // Beside the page, which would lose the key.
    expect(await page.getByRole('link', { name: 'Documentation' }).getAttribute('target')).toBe('_blank');
    // A program for mail opens in its own window: another tab would stay empty.
    expect(await page.getByRole('link', { name: 'Support' }).getAttribute('target')).toBeNull();
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(await overflow(page)).toBe(0);
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download CSV' }).click();
    const file = await (await download).path();
    const hours = (await readFile(file, 'utf8')).trim().split('\n');
    expect(hours.shift()).toMatch(/^start,requests,/);
    // The requests may be in two hours.
    const sums = [1, 2, 3, 4].map((column) =>
      hours.reduce((sum, hour) => sum + Number(hour.split(',')[column]), 0),
    );
    expect(sums).toEqual([4, 3, 1, 1]);
    await page.getByRole('radio', { name: '7 days' }).check();
    await page.getByText('View as table').click();
    await page.locator('section[aria-busy=false] figure').waitFor();
    for (const [language, line] of [
      ['JavaScript', 'process.env.API_KEY'],
      ['Python', "os.environ['API_KEY']"],
      ['curl', '-H "Authorization: Bearer $API_KEY"'],
    ] as const) {
      await page.getByRole('radio', { name: language }).check();
      const example = await page.locator('[data-example]').textContent();
      expect(example).toContain(line);
      expect(example).toContain(fleet.replicas[0]?.url);
    }
    expect(await stored(page)).not.toContain(secret);
    expect(await page.content()).not.toContain(secret);
    const own = `${fleet.replicas[0]?.url}/tollgate/`;
    const strange = requests.filter((url) => url.includes(secret) || !url.startsWith(own));
    // The file is one of the page's own memory.
    expect(strange.filter((url) => !url.startsWith('blob:'))).toEqual([]);
    expect(fleet.replicas[0]?.output()).not.toContain(secret);
    await page.reload();
    await page.getByLabel('API key', { exact: true }).waitFor();
    expect(faults).toEqual([]);
  });

  it('has its words in English for a reader of another language', async () => {
    const plan = { rateLimitId: 'bronze', description: '', limit: 3000, period: 'day' };
    await fleet.admin.call('POST', '/rate-limit/create', plan);
    const { secret } = await makeKey('App from abroad', { rateLimitId: 'bronze' });
    await use(secret, '/');
    const { page } = await open('light', { locale: 'de-DE' });
    await signIn(page, secret);
    await page.getByText(/^Resets in 2\d hours, at \d+ [A-Z][a-z]+ \d{4}, \d\d:\d\d:\d\d /).waitFor();
    // Numbers are as the reader writes them.
    await page.getByText('2.999 of 3.000 left').waitFor();
  });

  it('distinguishes the outcomes, and what is chosen, in high contrast', async () => {
    const { secret } = await makeKey('App in high contrast');
    const { page } = await open('light');
    await page.emulateMedia({ forcedColors: 'active' });
    await signIn(page, secret);
    await page.locator('.legend').waitFor();
    const coloursOf = (selector: string, part = '') =>
      page.evaluate<string[]>(`[...document.querySelectorAll('${selector}')].map((one) =>
        getComputedStyle(one, '${part}').backgroundColor)`);
    expect(new Set(await coloursOf('.legend li', '::before')).size).toBe(3);
    const [chosen, other] = await coloursOf('fieldset.ranges:first-of-type label');
    expect(chosen).not.toBe(other);
  });

  it('does not say of a limit for some requests that the plan allows no more', async () => {
    await fleet.admin.call('POST', '/rate-limit/create', {
      ...{ rateLimitId: 'gold', description: '', limit: 1000, period: 'hour' },
      additionalLimits: [
        { limitId: 'search', limit: 5, period: 'minute', match: [{ methods: ['POST'], path: '/v1/search' }] },
      ],
    });
    const { secret } = await makeKey('Searching app', { rateLimitId: 'gold' });
    const { page } = await open('light');
    await signIn(page, secret);
    await page.getByText('Your plan “gold” has the limits 5 a minute and 1,000 an hour.').waitFor();
    await page.getByText('A limit with a name may be for some requests only').waitFor();
    await page.getByText('search: 5 a minute', { exact: true }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
  });

  it('is in the time zone of the device, also after that has changed', async () => {
    const { secret } = await makeKey('Travelling app', { expiresAt: '2098-01-31T10:00:00Z' });
    const { page } = await open('light');
    const device = await page.context().newCDPSession(page);
    const moveTo = (timezoneId: string) => device.send('Emulation.setTimezoneOverride', { timezoneId });
    await moveTo('America/Sao_Paulo');
    await signIn(page, secret);
    await page.getByText(/^The key expires on Jan 31, 2098, 7:00:00\sAM GMT-3\.$/).waitFor();
    await moveTo('Asia/Tokyo');
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText(/^The key expires on Jan 31, 2098, 7:00:00\sPM GMT\+9\.$/).waitFor();
    const asked = page.waitForRequest(/timeZone=/);
    await page.getByRole('radio', { name: '7 days' }).check();
    expect(new URL((await asked).url()).searchParams.get('timeZone')).toBe('Asia/Tokyo');
  });

  it('has the focus on what is new: the key, and the field again with the reason', async () => {
    const { id, secret } = await makeKey('Focused app');
    const { page } = await open('light');
    await signIn(page, secret);
    await page.getByRole('heading', { name: 'Focused app' }).waitFor();
    expect(await focused(page)).toBe('Focused app');
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { enabled: false });
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.locator('input:focus').waitFor();
    const description =
      await page.evaluate(`document.activeElement.getAttribute('aria-describedby').split(' ')
      .map((id) => document.getElementById(id).textContent).join(' ')`);
    expect(description).toMatch(
      /^This key is disabled\. Ask the person who gave it to you\. +Your key stays in /,
    );
    expect(await accessibilityFaults(page)).toEqual([]);
  });

  it('fits on the narrowest phone, whatever the names are', async () => {
    const long = 'x'.repeat(64);
    await fleet.admin.makePlan(long, 1_000_000_000, 'hour');
    const { id, secret } = await makeKey(long.repeat(3), { rateLimitId: long, selfService: ['rotate'] });
    await use(secret, `/v1/${long}`);
    await until(async () => (await fleet.admin.detail(id)).usage.totalRequests === 1);
    const { page } = await open('light', { width: NARROWEST });
    await signIn(page, secret);
    await page.getByRole('row', { name: long }).waitFor();
    expect(await overflow(page)).toBe(0);
  });

  it('looks again every minute while it is visible', async () => {
    const { id, secret } = await makeKey('Watched app');
    const { page, requests } = await open('light');
    await page.clock.install();
    await signIn(page, secret);
    await page.getByRole('heading', { name: 'Watched app' }).waitFor();
    await page.getByText('No requests in this time.').first().waitFor();
    const looks = () => requests.filter((url) => url.endsWith('/tollgate/self')).length;
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { name: 'Renamed app' });
    const before = looks();
    await page.clock.runFor(60_000);
    await page.getByRole('heading', { name: 'Renamed app' }).waitFor();
    // The clock of the page goes on by itself as well.
    expect(looks() - before).toBeLessThanOrEqual(2);
    await page.evaluate("Object.defineProperty(document, 'visibilityState', { value: 'hidden' })");
    const visible = looks();
    await page.clock.runFor(300_000);
    await page.evaluate('1');
    expect(looks()).toBe(visible);
  });

  it('keeps nothing of the key for a browser that shows the page again after Back', async () => {
    const { secret } = await makeKey('Left app', { selfService: ['rotate'] });
    const { page } = await open('light');
    await signIn(page, secret);
    await page.getByRole('button', { name: 'Make a new secret' }).click();
    const rotated = (await page.locator('[data-secret]').textContent()) ?? 'no secret';
    const left = await contentWhileLeft(page);
    for (const each of ['Left app', rotated]) expect(left).not.toContain(each);
    await page.getByLabel('API key', { exact: true }).waitFor();
  });

  it('keeps a key signed in when a look of the one before fails late', async () => {
    const [before, after] = [await makeKey('Slow app'), await makeKey('Next app')];
    const { page } = await open('light');
    await signIn(page, before.secret);
    await page.getByText('No requests in this time.').first().waitFor();
    const asked = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    await page.route(
      '**/tollgate/self',
      async (route) => {
        asked.resolve();
        await release.promise;
        await route.fulfill({ status: 401, json: { code: 'invalid_api_key' } });
      },
      { times: 1 },
    );
    await page.getByRole('button', { name: 'Refresh' }).click();
    await asked.promise;
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, after.secret);
    await page.getByText('No requests in this time.').first().waitFor();
    const rejected = page.waitForResponse((response) => response.status() === 401);
    release.resolve();
    await rejected;
    const predicate = (request: Request) => request.url().endsWith('/tollgate/self');
    // The browser may report as failed what the page has read: `finished()` of its response does not resolve then.
    const looked = Promise.race([
      page.waitForEvent('requestfinished', { predicate }),
      page.waitForEvent('requestfailed', { predicate }),
    ]);
    await page.getByRole('button', { name: 'Refresh' }).click();
    await looked;
    await page.getByRole('heading', { name: 'Next app' }).waitFor();
    expect(await page.getByLabel('API key', { exact: true }).count()).toBe(0);
  });

  it('never shows the response to an older look after that to a newer one', async () => {
    const { id, secret } = await makeKey('First app');
    const { page } = await open('light');
    await signIn(page, secret);
    await page.getByText('No requests in this time.').first().waitFor();
    const asked = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    await page.route(
      '**/tollgate/self',
      async (route) => {
        const response = await route.fetch();
        asked.resolve();
        await release.promise;
        await route.fulfill({ response });
      },
      { times: 1 },
    );
    const refresh = page.getByRole('button', { name: 'Refresh' });
    await refresh.click();
    await asked.promise;
    const lookAgain = async (name: string) => {
      await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { name });
      await refresh.click();
      await page.getByRole('heading', { name }).waitFor();
    };
    await lookAgain('Second app');
    await page.evaluate(`globalThis.names = [];
      new MutationObserver(() => names.push(document.querySelector('h1').textContent))
        .observe(document.querySelector('h1'), { subtree: true, characterData: true, childList: true })`);
    const late = page.waitForResponse((response) => response.url().endsWith('/tollgate/self'));
    release.resolve();
    await late;
    await lookAgain('Third app');
    expect(await page.evaluate('names')).toEqual(['Third app']);
  });

  it('says that a file was not made until it is made', async () => {
    const { secret } = await makeKey('Exporting app');
    const { page } = await open('light');
    await signIn(page, secret);
    await page.getByText('No requests in this time.').first().waitFor();
    await page.route(/format=csv/, (route) => route.fulfill({ status: 503, json: {} }), { times: 1 });
    const save = page.getByRole('button', { name: 'Download CSV' });
    await save.click();
    const fault = page.getByRole('alert').filter({ hasText: 'The gateway does not respond properly' });
    await fault.waitFor();
    await Promise.all([page.waitForEvent('download'), save.click()]);
    await fault.waitFor({ state: 'detached' });
  });

  it('shows new numbers where the browser has translated the page', async () => {
    const plan = { rateLimitId: 'translated', description: '', limit: 10, period: 'hour' };
    await fleet.admin.call('POST', '/rate-limit/create', plan);
    const { id, secret } = await makeKey('Translated app', { rateLimitId: 'translated' });
    const { page, faults } = await open('light');
    await signIn(page, secret);
    await page.getByText('10 of 10 left').waitFor();
    await page.getByText('No requests in this time.').first().waitFor();
    await translate(page);
    for (let request = 0; request < 3; request += 1) await use(secret, '/translated');
    await until(async () => (await fleet.admin.detail(id)).usage.totalRequests === 3);
    const changes = { name: 'Renamed after it', expiresAt: '2098-01-31T10:00:00Z' };
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, changes);
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('7 of 10 left').waitFor();
    await page.getByRole('heading', { name: 'Renamed after it', exact: true }).waitFor();
    await page.getByText(/^The key expires on Jan 31, 2098/).waitFor();
    // The requests may be in two hours.
    await page.getByText(/^Highest bar: [23]$/).waitFor();
    await page.getByRole('radio', { name: '30 days' }).check();
    await page.getByText('The last 30 days, in UTC.').waitFor();
    expect(await page.locator('.axis').textContent()).not.toMatch(/[AP]M/);
    expect(await page.locator('pre font').count()).toBe(0);
    await page.getByRole('button', { name: 'Copy', exact: true }).click();
    await page.getByRole('button', { name: /^(Copied|Select the text and copy it yourself\.)$/ }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, ' ');
    await page.getByText('Enter your API key.').waitFor();
    await translate(page);
    await signIn(page, 'wrong');
    await page.getByText('This is not a valid key.').waitFor();
    expect(await page.locator('#key-fault').textContent()).toMatch(/^This is not a valid key\. [^.]*\.$/);
    expect(faults).toEqual([]);
  });

  it('lets screen readers say that it was refreshed, but only after a click', async () => {
    const { secret } = await makeKey('Refreshed app');
    const { page } = await open('light');
    await page.clock.install();
    await signIn(page, secret);
    await page.getByText('No requests in this time.').first().waitFor();
    const shown = page.getByText(/^As of /);
    const spoken = page.locator('[aria-live=polite]', { hasText: 'As of' });
    const first = (await shown.textContent()) ?? '';
    // The look of each minute comes once, and not again until the clock is moved.
    await page.clock.pauseAt(Date.now() + 3_600_000);
    await shown.filter({ hasNotText: first }).waitFor();
    expect(await spoken.count()).toBe(0);
    const second = (await shown.textContent()) ?? '';
    await page.clock.runFor(1000);
    // The page may have to wait for its turn.
    await page.clock.resume();
    await page.getByRole('button', { name: 'Refresh' }).click();
    await spoken.filter({ hasNotText: second }).waitFor();
    await page.clock.runFor(60_000);
    await spoken.waitFor({ state: 'detached' });
  });

  it('lets screen readers say the use in a chosen range, but not at each refresh', async () => {
    const { secret } = await makeKey('Heard app');
    const { page } = await open('light');
    await signIn(page, secret);
    await page.locator('figcaption[aria-live=off]', { hasText: '24 hours: No requests' }).waitFor();
    await page.getByRole('radio', { name: '7 days' }).check();
    const spoken = page.locator('figcaption[aria-live=polite]', { hasText: '7 days: No requests' });
    await spoken.waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.locator('figcaption[aria-live=off]', { hasText: '7 days: No requests' }).waitFor();
  });

  it('shows the ten busiest endpoints and the rest, and examples with the address of PUBLIC_URL', async () => {
    const { id, secret } = await makeKey('Busy app');
    for (let path = 0; path < 12; path += 1) await use(secret, `/v1/things/${path}`);
    await use(secret, '/v1/things/11');
    await until(async () => (await fleet.admin.detail(id)).usage.totalRequests === 13);
    const PUBLIC_URL = 'https://api.example.com';
    const behind = await startInProcess({ ...fleet.environment, PUBLIC_URL });
    try {
      const { page } = await open('light', { url: behind.url });
      await signIn(page, secret);
      await page.getByRole('row', { name: 'all others 2 0 0' }).waitFor();
      const rows = page.getByRole('rowheader', { name: '/v1/things/' });
      expect(await rows.count()).toBe(10);
      expect(await rows.first().textContent()).toBe('/v1/things/11');
      expect(await page.locator('[data-example]').textContent()).toContain(`${PUBLIC_URL}/`);
    } finally {
      await behind.stop();
    }
  });

  it('gives a key that allows it a new secret, which the tab goes on with', async () => {
    const { id, secret } = await makeKey('Rotating app', { selfService: ['rotate'] });
    const { page, faults, requests } = await open('dark', { width: 1440 });
    await signIn(page, secret);
    await page.getByRole('heading', { name: 'New secret' }).waitFor();
    await page.getByText('No requests in this time.').first().waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('radio', { name: '1 hour' }).check();
    const looked = () =>
      page.waitForResponse((response) => response.url().endsWith('/tollgate/self') && response.ok());
    await Promise.all([looked(), page.getByRole('button', { name: 'Make a new secret' }).click()]);
    const shown = page.locator('[data-secret]');
    await shown.waitFor();
    const rotated = (await shown.textContent()) ?? '';
    expect(await shown.getAttribute('translate')).toBe('no');
    await page.getByText(/^The previous secret works until /).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await Promise.all([looked(), page.getByRole('button', { name: 'I have kept it' }).click()]);
    await page.getByText(/^The key was given a new secret\. The previous one works until /).waitFor();
    expect(await focused(page)).toBe('New secret');
    expect(rotated).toMatch(/^tg_/);
    expect(rotated).not.toBe(secret);
    for (const each of [secret, rotated]) {
      expect([await page.content(), await stored(page), ...requests].join()).not.toContain(each);
      expect(fleet.replicas[0]?.output()).not.toContain(each);
    }
    await fleet.admin.call('POST', `/consumer-api-key/${id}/end-rotation`, { keep: 'new' });
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByRole('button', { name: 'Make a new secret' }).waitFor();
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { enabled: false });
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('This key is disabled. Ask the person who gave it to you.').waitFor();
    await page.getByLabel('API key', { exact: true }).waitFor();
    expect(faults).toEqual([]);
  });

  it('shows a new secret until it is kept, whatever happens to the previous one', async () => {
    const { id, secret } = await makeKey('Leaked app', { selfService: ['rotate'] });
    const { page } = await open('light');
    await signIn(page, secret);
    await page.getByText('No requests in this time.').first().waitFor();
    const performed = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    await page.route('**/tollgate/self/rotate', async (route) => {
      const response = await route.fetch();
      performed.resolve();
      await release.promise;
      await route.fulfill({ response });
    });
    await page.getByRole('radio', { name: 'Not at all' }).check();
    await page.getByRole('button', { name: 'Make a new secret' }).click();
    await performed.promise;
    await until(() => asksBeforeLeaving(page));
    await Promise.all([
      page.waitForResponse((response) => response.status() === 401),
      page.getByRole('button', { name: 'Refresh' }).click(),
    ]);
    release.resolve();
    await page.getByText('The previous secret does not work any more.').waitFor();
    expect(await focused(page)).toBe('New secret');
    expect(await asksBeforeLeaving(page)).toBe(true);
    const [question] = await Promise.all([
      page.waitForEvent('dialog').then(async (dialog) => {
        await dialog.dismiss();
        return dialog.message();
      }),
      page.getByRole('button', { name: 'Sign out' }).click(),
    ]);
    expect(question).toBe('The new secret is on this page only. Sign out without it?');
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { enabled: false });
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('This key is disabled. Ask the person who gave it to you.').first().waitFor();
    expect(await page.locator('[data-secret]').textContent()).toMatch(/^tg_/);
    await page.getByRole('button', { name: 'I have kept it' }).click();
    await page.getByLabel('API key', { exact: true }).waitFor();
    await until(async () => !(await asksBeforeLeaving(page)));
  });

  it('says that the key may have a new secret that was lost with the response', async () => {
    const { secret } = await makeKey('Unlucky app', { selfService: ['rotate'] });
    const { page } = await open('light');
    await signIn(page, secret);
    await page.getByText('No requests in this time.').first().waitFor();
    await page.route(
      '**/tollgate/self/rotate',
      async (route) => {
        await route.fetch();
        await route.abort();
      },
      { times: 1 },
    );
    await page.getByRole('radio', { name: 'Not at all' }).check();
    const rotate = page.getByRole('button', { name: 'Make a new secret' });
    await rotate.click();
    await page.getByText('There was no response. Check your connection, then try again.').waitFor();
    await rotate.click();
    const lost = page.getByText('The key may have been given a new secret that did not arrive here.');
    await lost.waitFor();
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByLabel('API key', { exact: true }).waitFor();
    await lost.waitFor();
  });

  it('shows a new secret whose response was lost, once the consumer tries again', async () => {
    const { id, secret } = await makeKey('Patient app', { selfService: ['rotate'] });
    const { page } = await open('light');
    await signIn(page, secret);
    await page.getByText('No requests in this time.').first().waitFor();
    let lost = '';
    await page.route(
      '**/tollgate/self/rotate',
      async (route) => {
        lost = (await (await route.fetch()).json()).secret;
        await route.abort();
      },
      { times: 1 },
    );
    const rotate = page.getByRole('button', { name: 'Make a new secret' });
    await page.getByRole('radio', { name: /^24 hours Both/ }).check();
    await rotate.click();
    await page.getByText('There was no response. Check your connection, then try again.').waitFor();
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { name: 'Refreshed app' });
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByRole('heading', { name: 'Refreshed app' }).waitFor();
    // Another choice would be another rotation.
    expect(await page.getByRole('radio', { name: /^7 days Both/ }).isDisabled()).toBe(true);
    await rotate.click();
    await page.getByText(/^The previous secret works until /).waitFor();
    expect(lost).toMatch(/^tg_/);
    expect(await page.locator('[data-secret]').textContent()).toBe(lost);
    await page.getByRole('button', { name: 'I have kept it' }).click();
    await page.getByText(/^The key was given a new secret\. The previous one works until /).waitFor();
  });
});
