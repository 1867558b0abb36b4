import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createDemoPlans } from '../../src/cli/demo/demo-records.ts';
import { bodyOf, createManagementClient } from '../../src/client/management-client.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { until } from '../support/until.ts';
import { type ConsoleStage, startConsole } from './browser-fixture.ts';
import { type SampleKey, writeSampleUsage } from './sample-usage.ts';
import { RECEIVER_SETTINGS, startReceiver, type WebhookReceiver } from './webhook-receiver.ts';

/** Where pictures of the pages are put; none are taken without it. */
const pictures = process.env.CONSOLE_PICTURES;

/** Of a phone; pixels. */
const PHONE = 390;
/** Labels of what can be scrolled sideways. */
const SIDEWAYS = `[...document.querySelectorAll('main *')]
  .filter((one) => one.scrollWidth > one.clientWidth && /auto|scroll/.test(getComputedStyle(one).overflowX))
  .map((one) => one.ariaLabel ?? one.className)`;
/** Words that a line breaks in the middle, though they would fit into one. */
const BROKEN_WORDS = `(() => {
  const broken = [];
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    for (const { 0: word, index } of texts.currentNode.data.matchAll(/[\\p{L}\\p{N}]{2,20}/gu)) {
      const range = document.createRange();
      range.setStart(texts.currentNode, index);
      range.setEnd(texts.currentNode, index + word.length);
      const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
      if (lines.size > 1) broken.push(word);
    }
  }
  return broken;
})()`;

/** Whether any of the focused link or button of the page can be seen: its text if not, null if the focus is elsewhere. */
const HIDDEN_FOCUS = `(() => {
  const one = document.activeElement;
  if (!one.matches('main a, main button')) return null;
  const { left, top, width, height } = one.getBoundingClientRect();
  const parts = [0.05, 0.5, 0.95];
  const isSeen = parts.some((x) => parts.some((y) =>
    one.contains(document.elementFromPoint(left + width * x, top + height * y))));
  return isSeen || one.textContent;
})()`;
/** Colours of the chart's legend that the chart does not have. */
const MISSING_COLOURS = `(() => {
  const figure = document.querySelector('figure');
  const canvas = figure.querySelector('canvas');
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d');
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
  const drawn = new Set();
  for (let at = 0; at < data.length; at += 4) drawn.add('rgb(' + data.slice(at, at + 3).join(', ') + ')');
  const legend = [...figure.querySelectorAll('[aria-label=Series] span')];
  const colours = new Set(legend.map((one) => getComputedStyle(one).backgroundColor));
  return colours.size < legend.length ? 'one for all' : [...colours].filter((each) => !drawn.has(each));
})()`;

const DAY_MS = 86_400_000;
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString().replace(/\.\d+/, '');

/** Busy, near a limit, over it, about to expire, disabled, and with a name that is hostile. */
const KEYS: readonly SampleFields[] = [
  {
    name: 'Mobile app',
    rateLimitId: 'standard',
    externalId: 'acme',
    tags: ['production', 'mobile'],
    requests: 4200,
    limited: 0.002,
    failed: 0.01,
  },
  {
    name: 'Web shop',
    rateLimitId: 'standard',
    externalId: 'acme',
    tags: ['production'],
    requests: 2600,
    limited: 0,
    failed: 0.004,
  },
  {
    name: 'Billing service',
    rateLimitId: 'standard',
    externalId: 'acme',
    tags: ['production'],
    requests: 900,
    limited: 0,
    failed: 0.03,
  },
  {
    name: 'Price crawler',
    rateLimitId: 'trial',
    externalId: 'globex',
    tags: ['trial'],
    requests: 1400,
    limited: 0.22,
    failed: 0.02,
    sends: 24,
  },
  {
    name: 'Nightly import',
    rateLimitId: 'partner',
    externalId: 'initech',
    tags: ['batch'],
    requests: 350,
    limited: 0.01,
    failed: 0,
    sends: 36,
    path: '/v1/batch',
  },
  {
    name: 'Hackathon',
    rateLimitId: 'trial',
    tags: ['trial'],
    expiresAt: inDays(3),
    requests: 60,
    limited: 0.05,
    failed: 0.1,
  },
  {
    name: 'Partner portal',
    rateLimitId: 'partner',
    externalId: 'umbrella',
    tags: ['production'],
    expiresAt: inDays(6),
    requests: 240,
    limited: 0,
    failed: 0.01,
  },
  { name: 'Warehouse scanners', rateLimitId: 'standard', externalId: 'acme', tags: ['staging'] },
  { name: 'Website of 2019', rateLimitId: 'standard', enabled: false, tags: ['legacy'] },
];
/** One that works, one that does not, and one that is off: the last one shows its deliveries. */
const WEBHOOKS: readonly { readonly path: string; readonly fields: SampleWebhook }[] = [
  { path: '/chat', fields: { events: ['tollgate.plan.*'], description: 'Chat of the platform team' } },
  { path: '/siem', fields: { events: ['tollgate.*'], description: 'SIEM', enabled: false } },
  {
    path: '/broken/billing',
    fields: {
      events: ['tollgate.key.created', 'tollgate.key.deleted', 'tollgate.admin_token.*'],
      description: 'Billing',
      onlyTags: ['production'],
      headers: { authorization: 'Bearer of-the-receiver' },
    },
  },
];
const HOSTILE = '<img src=x onerror=alert(1)> \u200Fgnp.exe';

describe('every page of the console', () => {
  let stage: ConsoleStage;
  let receiver: WebhookReceiver;
  let token: string;
  let keyPage: string;
  let webhookPage: string;

  beforeAll(async () => {
    receiver = await startReceiver();
    stage = await startConsole(RECEIVER_SETTINGS);
    const client = createManagementClient({ url: stage.url, token: ROOT_TOKEN });
    for (const body of WEBHOOKS) {
      const url = receiver.url + body.path;
      const { webhookId, secret } = await bodyOf(
        client.POST('/tollgate/webhook/create', { body: { ...body.fields, url } }),
      );
      stage.keepSecret(secret);
      webhookPage = `/webhooks/${webhookId}`;
    }
    await createDemoPlans(client);
    const past: SampleKey[] = [];
    for (const { requests = 0, limited = 0, failed = 0, sends = 3, path = '/v1/orders', ...body } of KEYS) {
      const { id, secret } = await stage.makeKey(body);
      if (requests > 0) past.push({ id, planId: body.rateLimitId, requests, limited, failed });
      keyPage ??= `/keys/${id}`;
      if (requests > 0) await stage.use(secret, sends, path, { 'x-customer-id': 'north-store' });
    }
    await writeSampleUsage(stage.fleet.databaseUrl, past);
    const scopes = [
      ...['keys:read', 'keys:write', 'keys:delete', 'limits:write', 'plans:read', 'plans:write'],
      ...['usage:read', 'audit:read', 'tokens:write', 'webhooks:read', 'webhooks:write'],
    ];
    token = (await stage.makeToken({ name: 'Operations', scopes, expiresAt: inDays(60) })).secret;
    if (pictures !== undefined) await mkdir(pictures, { recursive: true });
  }, 300_000);
  afterAll(async () => {
    await stage?.stop();
    await receiver?.stop();
  });

  // Each page is loaded in one theme, and changes to the other where it is.
  const looks = [
    { width: 1280, themes: ['light', 'dark'] },
    { width: PHONE, themes: ['dark', 'light'] },
  ] as const;
  const pages = {
    overview: () => '/',
    keys: () => '/keys',
    key: () => keyPage,
    plans: () => '/plans',
    plan: () => '/plans/standard',
    usage: () => '/usage',
    audit: () => '/audit',
    webhooks: () => '/webhooks',
    webhook: () => webhookPage,
    tokens: () => '/tokens',
    system: () => '/system',
  } as const;

  it.each(looks)('can be used by everyone and fits its window, $width px wide', async ({ width, themes }) => {
    const tab = await stage.open('/', { token: null, width });
    const { page } = tab;
    const faults: Record<string, unknown> = {};
    const look = async (name: string) => {
      for (const theme of themes) {
        await page.emulateMedia({ colorScheme: theme });
        const broken = await tab.accessibilityFaults(theme === themes[0] ? 'all' : 'looks');
        const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
        const sideways = width === PHONE ? await page.evaluate<string[]>(SIDEWAYS) : [];
        const words = await page.evaluate<string[]>(BROKEN_WORDS);
        if (broken.length > 0 || overflow > 0 || sideways.length > 0 || words.length > 0)
          faults[`${name}, ${theme}`] = { broken, overflow, sideways, words };
        if (pictures !== undefined)
          await page.screenshot({ path: join(pictures, `${name}-${theme}-${width}.png`) });
      }
    };
    await page.emulateMedia({ colorScheme: themes[0] });
    await page.getByLabel('Token', { exact: true }).waitFor();
    await look('sign-in');
    await tab.signIn(token);
    for (const [name, path] of Object.entries(pages)) {
      await page.emulateMedia({ colorScheme: themes[0] });
      await page.goto(`${stage.url}/tollgate/console${path()}`);
      await tab.untilLoaded();
      for (const canvas of await page.locator('figure').all())
        await canvas.locator('canvas').first().waitFor();
      await look(name);
    }
    await tab.close();
    expect(faults).toEqual({});
  });

  it('shows which item of a menu is chosen by a line, and not by a shade alone', async () => {
    const tab = await stage.open(keyPage, { token, theme: 'dark' });
    const { page } = tab;
    const outlineOf = async (item: string) => {
      await page.locator(item).waitFor();
      return page.evaluate(`getComputedStyle(document.querySelector('${item}')).outlineStyle`);
    };
    await page.getByRole('button', { name: 'More actions' }).press('Enter');
    expect(await outlineOf('[role=menuitem][data-highlighted]')).toBe('solid');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog', { name: 'Go to' }).waitFor();
    await page.keyboard.press('ArrowDown');
    expect(await outlineOf('[role=option][data-highlighted]')).toBe('solid');
    await tab.close();
  });

  it('distinguishes the outcomes, and what is chosen, in high contrast', async () => {
    const tab = await stage.open('/', { token });
    const { page } = tab;
    await page.emulateMedia({ forcedColors: 'active' });
    await page.goto(`${stage.url}/tollgate/console/usage`);
    await page.locator('figure canvas').first().waitFor();
    await until(async () => JSON.stringify(await page.evaluate(MISSING_COLOURS)) === '[]');
    const colourOf = (link: string) =>
      page.evaluate(`getComputedStyle(document.querySelector('nav a${link}')).backgroundColor`);
    expect(await colourOf('[aria-current=page]')).not.toBe(await colourOf(':not([aria-current])'));
    await tab.close();
  });

  it('never hides what has the focus on a phone', async () => {
    const tab = await stage.open('/keys', { token, width: PHONE });
    const { page } = tab;
    await page.setViewportSize({ width: PHONE, height: 300 });
    await tab.untilLoaded();
    const looks: unknown[] = [];
    for (const key of ['Tab', 'Shift+Tab'])
      for (let presses = 0; presses < 60; presses += 1) {
        await page.keyboard.press(key);
        looks.push(await page.evaluate(HIDDEN_FOCUS));
      }
    await tab.close();
    const inPage = looks.filter((seen) => seen !== null);
    expect(inPage.filter((seen) => seen !== true)).toEqual([]);
    expect(inPage.length).toBeGreaterThan(20);
  });

  it('has its words in English for a reader of another language', async () => {
    const tab = await stage.open(keyPage, { token, locale: 'de-DE' });
    await tab.untilLoaded();
    await tab.page.locator('time').first().waitFor();
    const times = await tab.page.evaluate<[string, string][]>(
      "[...document.querySelectorAll('time')].map(({ textContent, title }) => [textContent, title])",
    );
    for (const [time, title] of times) {
      expect(time).toMatch(/^now$|^in \d+ [a-z]+$|^\d+ [a-z]+ ago$/);
      expect(title).toMatch(/^\d+ [A-Z][a-z]+ \d{4}, [\d:]+ \(Europe\/Berlin\)$/);
    }
    await tab.close();
  });

  it('is printed in the light theme, also if the dark one was chosen', async () => {
    const tab = await stage.open('/keys', { token });
    const { page } = tab;
    const colour = () => page.evaluate<string>('getComputedStyle(document.body).color');
    const light = await colour();
    await page.evaluate("document.documentElement.dataset.theme = 'dark'");
    expect(await colour()).not.toBe(light);
    await page.emulateMedia({ media: 'print' });
    expect(await colour()).toBe(light);
    await tab.close();
  });

  it('has as many requests in all as its keys have together', async () => {
    const client = createManagementClient({ url: stage.url, token: ROOT_TOKEN });
    // Without those that were sent just now.
    const [from, to] = [inDays(-2), inDays(-1)];
    const requestsBy = async (groupBy: object) => {
      const query = { from, to, interval: 'total', format: 'json', ...groupBy } as const;
      const series = await bodyOf(client.GET('/api-keys/usage', { params: { query } }));
      if (typeof series === 'string') throw new Error('the usage is a CSV file');
      return series.rows.reduce((sum, { requests }) => sum + requests, 0);
    };
    const all = await requestsBy({});
    expect(all).toBeGreaterThan(0);
    expect(await requestsBy({ groupBy: 'key' })).toBe(all);
  });

  it('shows hostile names as text', async () => {
    const fields = { name: HOSTILE, externalId: HOSTILE, tags: ['staging'], metadata: { note: HOSTILE } };
    const reason = { 'x-audit-reason': 'A name that is <b>hostile</b>' };
    const made = await stage.fleet.admin.call('POST', '/consumer-api-key/create', fields, reason);
    expect(made.status).toBe(201);
    const tab = await stage.open('/keys?q=onerror', { token });
    await tab.page.getByText(HOSTILE, { exact: true }).first().waitFor();
    expect(await tab.page.locator('img[src=x]').count()).toBe(0);
    await tab.page.goto(`${stage.url}/tollgate/console/audit`);
    await tab.page.getByText('A name that is <b>hostile</b>').first().waitFor();
    expect(await tab.page.locator('main b').count()).toBe(0);
    await tab.close();
  });
});

interface SampleWebhook {
  readonly events: string[];
  readonly description: string;
  readonly enabled?: boolean;
  readonly onlyTags?: string[];
  readonly headers?: Readonly<Record<string, string>>;
}

interface SampleFields {
  readonly name: string;
  readonly rateLimitId: string;
  readonly externalId?: string;
  readonly tags: string[];
  readonly enabled?: boolean;
  readonly expiresAt?: string;
  readonly requests?: number;
  readonly limited?: number;
  readonly failed?: number;
  readonly sends?: number;
  readonly path?: string;
}
