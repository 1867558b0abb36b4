import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { expect } from '@jest/globals';
import type { Browser, BrowserContext, Locator, Page, Request } from 'playwright-core';
import { buildConsoleWhereOutdated } from '../support/console-build.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { type GatewayProcess, ROOT_TOKEN } from '../support/gateway.ts';
import { launchChromium } from '../support/launch-chromium.ts';
import { testRedisUrl } from '../support/stores.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';

/** How often a page of the console looks at the gateway. */
const POLL_MS = 5000;
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** A gateway with Redis and Postgres, and a browser that shows its console. */
export interface ConsoleStage {
  readonly fleet: Fleet<GatewayProcess>;
  /** Of the gateway. */
  readonly url: string;
  readonly rootToken: string;
  /** Redis is gone for the gateway, until the function that this returns is called. */
  takeRedisUnavailable(): () => void;
  /** Opens a page of the console in a browser session of its own, signed in unless `token` is null. */
  open(path?: string, options?: OpenOptions): Promise<ConsoleTab>;
  /** Sends requests with a key through the gateway, one after the other, and resolves with their statuses. */
  use(
    secret: string,
    requests: number,
    path?: string,
    headers?: Readonly<Record<string, string>>,
  ): Promise<number[]>;
  /** Makes a key of these fields, and keeps its secret. */
  makeKey(fields: object): Promise<{ readonly id: string; readonly secret: string }>;
  /** Makes an admin token of these fields, and keeps its secret. */
  makeToken(fields: object): Promise<{ readonly adminTokenId: string; readonly secret: string }>;
  /** What must not be in a log, an address or the browser's storage from now on. */
  keepSecret(secret: string): void;
  /** Also holds that no page had an error or broke its security policy, and that no secret was where it must not be. */
  stop(): Promise<void>;
}

interface OpenOptions {
  /** The root token where it is missing. */
  readonly token?: string | null;
  readonly theme?: 'light' | 'dark';
  readonly width?: number;
  /** Whether the test moves the page's clock. */
  readonly clock?: boolean;
  /** The language of the browser. */
  readonly locale?: string;
}

/** A tab of the browser. Everything that is wrong with it is noted, and fails `stop` of the stage. */
interface ConsoleTab {
  readonly page: Page;
  /** Requests that the page has made so far: method and path with query. */
  readonly requests: readonly string[];
  /** Enters the token at the sign in, and waits for the page behind it. */
  signIn(token: string): Promise<void>;
  /**
   * Waits until the page shows (or hides) something after one of its next looks at the gateway. With `clock`, each comes as soon as the page has
   * the responses to the one before: a page gives up a request after 30 seconds.
   */
  untilSeen(locator: Locator, isSeen?: boolean): Promise<void>;
  /** Waits until the page has all that it asked for. */
  untilLoaded(): Promise<void>;
  /** Rules of WCAG 2.2 A and AA that the page breaks now, each with the elements that do; only those that look at colours and sizes, where nothing else has changed. */
  accessibilityFaults(rules?: 'all' | 'looks'): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Starts a gateway of its own for a test file, and a Chromium. The console is built where it is outdated. */
export async function startConsole(settings: Readonly<Record<string, string>> = {}): Promise<ConsoleStage> {
  await buildConsoleWhereOutdated();
  const redisUrl = testRedisUrl();
  const redisPort = portOf(redisUrl);
  const redis = await TcpRelay.start(redisPort);
  const fleet = await startFleet(1, {
    REDIS_URL: redis.urlOf(redisUrl),
    USAGE_FLUSH_MS: '1000',
    ...settings,
  });
  const browser = await launchChromium();
  const [gateway] = fleet.replicas;
  if (gateway === undefined) throw new Error('the fleet has no replica');
  const { url } = gateway;
  const faults: string[] = [];
  const secrets: string[] = [ROOT_TOKEN];
  const watch = { url, faults, secrets };
  const make = async (record: string, fields: object) => {
    const { status, body } = await fleet.admin.call('POST', `/${record}/create`, fields);
    if (status !== 201) throw new Error(`the record was not made: ${JSON.stringify(body)}`);
    secrets.push(body.secret);
    return body;
  };
  return {
    fleet,
    url,
    rootToken: ROOT_TOKEN,
    takeRedisUnavailable: () => {
      redis.reject();
      return () => redis.pass(redisPort);
    },
    open: (path = '/', options = {}) => openTab(browser, path, options, watch),
    use: async (secret, requests, path = '/orders', headers = {}) => {
      const statuses: number[] = [];
      for (let sent = 0; sent < requests; sent += 1) {
        const response = await fetch(`${url}${path}`, {
          headers: { authorization: `Bearer ${secret}`, ...headers },
        });
        await response.text();
        statuses.push(response.status);
      }
      return statuses;
    },
    makeKey: (fields) => make('consumer-api-key', fields),
    makeToken: (fields) => make('tollgate/admin-token', fields),
    keepSecret: (secret) => void secrets.push(secret),
    stop: async () => {
      for (const context of browser.contexts()) await checkStorage(context, watch);
      await browser.close();
      await fleet.stop();
      await redis.stop();
      const logged = secrets
        .filter((secret) => gateway.output().includes(secret))
        .map(() => 'a secret is in the log');
      expect([...faults, ...logged]).toEqual([]);
    },
  };
}

interface Watch {
  readonly url: string;
  readonly faults: string[];
  readonly secrets: readonly string[];
}

async function openTab(
  browser: Browser,
  path: string,
  { token = ROOT_TOKEN, theme = 'light', width = 1280, clock = false, locale = 'en-GB' }: OpenOptions,
  watch: Watch,
): Promise<ConsoleTab> {
  const context = await browser.newContext({
    colorScheme: theme,
    reducedMotion: 'reduce',
    viewport: { width, height: 900 },
    locale,
    timezoneId: 'Europe/Berlin',
  });
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: watch.url });
  if (clock) await context.clock.install();
  const page = await context.newPage();
  const requests = noteFaults(page, watch);
  const openRequests = noteOpenRequests(page);
  await page.goto(`${watch.url}/tollgate/console${path === '/' ? '' : path}`);
  const tab: ConsoleTab = {
    page,
    requests,
    signIn: async (presented) => {
      await page.getByLabel('Token', { exact: true }).fill(presented);
      await page.getByRole('button', { name: 'Sign in' }).click();
      // Behind a dialog that the page opens at once, it is there, but not for assistive technology.
      await page
        .getByRole('navigation', { name: 'Pages', includeHidden: true })
        .waitFor()
        .catch(async (cause: unknown) => {
          throw new Error(`not signed in: ${await page.locator('body').textContent()}`, { cause });
        });
    },
    untilSeen: (locator, isSeen = true) =>
      until(
        async () => {
          if (clock && openRequests.size === 0) await page.clock.fastForward(POLL_MS);
          return (await locator.first().isVisible()) === isSeen;
        },
        // Each look makes the page ask for all that it shows.
        { longestPauseMs: 200 },
      ),
    untilLoaded: async () => {
      await page.locator('main h1').waitFor();
      await until(async () => (await page.locator('[aria-busy=true]').count()) === 0);
    },
    accessibilityFaults: (rules = 'all') => brokenRules(page, rules),
    close: async () => {
      await checkStorage(context, watch);
      await context.close();
    },
  };
  if (token !== null) await tab.signIn(token);
  return tab;
}

/** Notes what must never happen in a page, and returns the list of its requests. */
function noteFaults(page: Page, { url, faults, secrets }: Watch): readonly string[] {
  const requests: string[] = [];
  page.on('console', (message) => {
    // The browser's own line for a response like 404 or 503; tests see the response itself.
    const isResponse = message.text().startsWith('Failed to load resource: the server responded with');
    if (['error', 'warning'].includes(message.type()) && !isResponse)
      faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`uncaught: ${error.message}`));
  page.on('dialog', (dialog) => {
    faults.push(`a script opened a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    const asked = request.url();
    if (asked.startsWith(url)) requests.push(`${request.method()} ${asked.slice(url.length)}`);
    else if (!asked.startsWith('blob:')) faults.push(`a request to elsewhere: ${asked}`);
    if (secrets.some((secret) => decodeURIComponent(asked).includes(secret)))
      faults.push('a secret is in an address');
  });
  page.on('framenavigated', (frame) => {
    if (secrets.some((secret) => frame.url().includes(secret))) faults.push('a secret is in the address bar');
  });
  return requests;
}

/** The requests of the page whose response is not complete, now and later. A stream of events never is, and does not count. */
function noteOpenRequests(page: Page): ReadonlySet<Request> {
  const open = new Set<Request>();
  page.on('request', (request) => {
    if (!request.url().includes('/tollgate/events')) open.add(request);
  });
  page.on('requestfinished', (request) => void open.delete(request));
  page.on('requestfailed', (request) => void open.delete(request));
  return open;
}

/** What outlasts the tab: cookies and `localStorage`. */
async function checkStorage(context: BrowserContext, { faults, secrets }: Watch): Promise<void> {
  const kept = JSON.stringify(await context.storageState());
  if (secrets.some((secret) => kept.includes(secret))) faults.push('a secret is in localStorage or a cookie');
}

/** Evaluated by the debugger, which the page's security policy does not stop; once in each document. */
async function brokenRules(page: Page, rules: 'all' | 'looks'): Promise<readonly string[]> {
  if (await page.evaluate<boolean>('globalThis.axe === undefined'))
    await page.evaluate(await readFile(AXE, 'utf8'));
  // A page that goes on loading is looked at as it is.
  await until(() => isAtRest(page), { timeoutMs: 5000 }).catch(() => {});
  return page.evaluate(async (runOnly) => {
    const { axe } = globalThis as unknown as { readonly axe: AxeCore };
    // What is not a violation needs no description, nor does an element need a selector beside its HTML.
    const lean = { resultTypes: ['violations'], selectors: false } as const;
    const { violations } = await axe.run({ runOnly: [...runOnly], ...lean });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
  }, AXE_RULES[rules]);
}

/** What is dimmed while it is read again, or fades, has other colours for a moment. */
function isAtRest(page: Page): Promise<boolean> {
  return page.evaluate<boolean>(`document.querySelector('[aria-busy="true"]') === null &&
    !document.getAnimations().some((one) => 'transitionProperty' in one && one.playState === 'running')`);
}

/** Tags, and the rules of these tags that look at colours and sizes. */
const AXE_RULES = {
  all: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
  looks: ['color-contrast', 'link-in-text-block', 'target-size'],
} as const;

/** What is used of axe-core in the page. */
interface AxeCore {
  run(options: {
    readonly runOnly: readonly string[];
    readonly resultTypes: readonly string[];
    readonly selectors: boolean;
  }): Promise<{
    readonly violations: readonly {
      readonly id: string;
      readonly nodes: readonly { readonly html: string }[];
    }[];
  }>;
}
