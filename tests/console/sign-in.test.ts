import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { startSignIn, type TestSignIn } from '../sign-in/start-sign-in.ts';
import { buildConsoleWhereOutdated } from '../support/console-build.ts';
import { launchChromium } from '../support/launch-chromium.ts';

const DIRECTORY = resolve(import.meta.dirname, '../../dist/console');

describe('The console with an identity provider', () => {
  let browser: Browser;
  let gateway: TestSignIn;

  beforeAll(async () => {
    await buildConsoleWhereOutdated();
    browser = await launchChromium();
    gateway = await startSignIn({ consoleDirectory: DIRECTORY });
  }, 300_000);
  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
  });

  it('signs a person in and out, and says why another one is not let in', async () => {
    const { provider, origin, management } = gateway;
    provider.people.set('nick', { name: 'Nick', groups: ['others'] });
    const page = await (await browser.newContext()).newPage();
    const faults = watch(page);
    const signIn = page.getByRole('link', { name: `Sign in with ${new URL(provider.issuer).host}` });

    provider.current = 'nick';
    await page.goto(`${origin}/tollgate/console/keys?q=a`);
    setClock();
    await signIn.click();
    await page.getByRole('alert').filter({ hasText: 'you have no access here' }).waitFor();
    const requestId = await page.getByRole('alert').locator('code').textContent();
    expect(management.lines.some((line) => line.includes(`"${requestId}"`))).toBe(true);
    expect(page.url()).toBe(`${origin}/tollgate/console/keys?q=a`);

    provider.current = 'alice';
    await page.context().clearCookies();
    setClock();
    await signIn.click();
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor();
    expect(page.url()).toBe(`${origin}/tollgate/console/keys?q=a`);
    await page.getByText('alice@example.com').waitFor();
    await page.reload();
    await page.getByText('Alice Example').waitFor();
    expect(
      await page.evaluate('document.cookie + JSON.stringify([sessionStorage, localStorage])'),
    ).not.toMatch(/tgs_|__Host/);

    const [session] = (await page.context().cookies()).filter(({ name }) => name === '__Host-tollgate');
    expect(session).toMatchObject({ httpOnly: true, secure: true, sameSite: 'Lax' });
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('You have signed out.').waitFor();
    await page.reload();
    await signIn.waitFor();
    const cookie = { Cookie: `__Host-tollgate=${session?.value}`, 'Tollgate-Console': '1' };
    expect((await fetch(`${origin}/tollgate/whoami`, { headers: cookie })).status).toBe(401);
    expect(faults).toEqual([]);
  });

  /** The clock of the gateway stands still, and that of the provider does not: they must not be too far apart. */
  function setClock(): void {
    const { clock } = gateway.management;
    clock.advance(Date.now() - clock.nowMs());
  }
});

/** Collects what must not happen in a page: an uncaught error, or a breach of its security policy. */
function watch(page: Page): readonly string[] {
  const faults: string[] = [];
  page.on('pageerror', ({ message }) => faults.push(`uncaught: ${message}`));
  page.on('console', (message) => {
    const text = message.text();
    if (message.type() === 'error' && !text.startsWith('Failed to load resource')) faults.push(text);
  });
  return faults;
}
