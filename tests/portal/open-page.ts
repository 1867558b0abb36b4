import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

interface OpenedPage {
  readonly page: Page;
  /** Errors of the page, and what its security policy has stopped. */
  readonly faults: readonly string[];
  /** Address of each request. */
  readonly requests: readonly string[];
}

interface Look {
  readonly colorScheme: 'light' | 'dark';
  readonly width?: number;
  /** The language of the browser. */
  readonly locale?: string;
  /** A browser reports each failed request; these are part of the test. */
  readonly expected: RegExp;
}

/** Opens a page for consumers, on a phone where there is no `width`. */
export async function openPage(browser: Browser, url: string, look: Look): Promise<OpenedPage> {
  const { colorScheme, width = 390, locale = 'en-US', expected } = look;
  const context = await browser.newContext({ colorScheme, locale, viewport: { width, height: 844 } });
  const page = await context.newPage();
  const faults: string[] = [];
  const requests: string[] = [];
  page.on('pageerror', ({ message }) => faults.push(message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !expected.test(message.text())) faults.push(message.text());
  });
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(url);
  return { page, faults, requests };
}

/** Leaves a page that the browser keeps, and comes back to it. What it held meanwhile. */
export async function contentWhileLeft(page: Page): Promise<string> {
  const transition = (type: string) =>
    `dispatchEvent(new PageTransitionEvent('${type}', { persisted: true }))`;
  await page.evaluate(transition('pagehide'));
  const content = await page.content();
  await Promise.all([page.waitForEvent('load'), page.evaluate(transition('pageshow'))]);
  return content;
}

export async function accessibilityFaults(page: Page): Promise<unknown> {
  await page.evaluate(await readFile(AXE, 'utf8'));
  return page.evaluate(
    `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html]))`,
  );
}

/** Whether the browser would ask before it reloads or leaves the page. */
export const asksBeforeLeaving = (page: Page) =>
  page.evaluate<boolean>("!dispatchEvent(new Event('beforeunload', { cancelable: true }))");

/** How far the page can be scrolled to the side. */
export const overflow = (page: Page) =>
  page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');

/** Of WCAG: that of 1280 pixels at 400 %. */
export const NARROWEST = 320;

export const focused = (page: Page) => page.evaluate('document.activeElement.textContent');

/** Puts an element in the place of each text, as Chrome does where it translates a page. */
export const translate = (page: Page) =>
  page.evaluate(`{
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    while (texts.nextNode()) found.push(texts.currentNode);
    for (const text of found.filter(({ parentElement }) => parentElement.closest('[translate=no]') === null)) {
      const font = document.createElement('font');
      font.textContent = text.data;
      text.replaceWith(font);
    }
  }`);
