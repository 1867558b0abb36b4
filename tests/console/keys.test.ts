import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { until } from '../support/until.ts';
import { type ConsoleStage, startConsole } from './browser-fixture.ts';

let stage: ConsoleStage;
beforeAll(async () => {
  stage = await startConsole();
}, 300_000);
afterAll(() => stage?.stop());

const makeKey = (fields: object) => stage.makeKey(fields);

async function makePlan(rateLimitId: string, limit: number): Promise<void> {
  await stage.fleet.admin.makePlan(rateLimitId, limit, 'hour');
}

const DAY_LINK = 'By a link that works for 24 hours';

/** As the page of a hand-over link does. */
async function reveal(token: string | undefined): Promise<{ readonly secret: string }> {
  const response = await fetch(`${stage.url}/tollgate/self/handover/reveal`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  return (await response.json()) as { readonly secret: string };
}

/** Presses the browser's Back, and waits until the page has drawn what it makes of it. */
const goBack = (page: Page) =>
  page.evaluate(`new Promise((resolve) => {
    addEventListener('popstate', () => requestAnimationFrame(() => requestAnimationFrame(() => resolve())), { once: true });
    history.back();
  })`);
const LONG = 120;
const EVERY = Array.from({ length: LONG }, (_, index) => index);

/** Scrolls until all pages of the list are loaded. */
const scrollToLastRow = (page: Page) =>
  until(async () => {
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    return (await page.locator(`tr[aria-rowindex="${LONG + 1}"]`).count()) === 1;
  });

/** Scrolls to one end of the page in steps, and says which rows of its table were in sight as a whole after any of them, in their order. */
const rowsInSight = (page: Page, stepPx: number) =>
  page.evaluate<number[]>(`(async () => {
    const seen = new Set();
    for (let last; scrollY !== last; ) {
      for (const row of document.querySelectorAll('tbody tr[aria-rowindex]')) {
        const { top, bottom } = row.getBoundingClientRect();
        if (top >= 0 && bottom <= innerHeight) seen.add(row.ariaRowIndex - 2);
      }
      last = scrollY;
      scrollBy(0, ${stepPx});
      // A frame has the event and what the page makes of it.
      for (let frames = 0; frames < 2; frames += 1) await new Promise(requestAnimationFrame);
    }
    return [...seen].sort((a, b) => a - b);
  })()`);
const dialogOf = (page: Page) => page.getByRole('dialog');
const buttonOf = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

describe('creating a key', () => {
  it('makes one key for a double click, shows its secret once, then its use', async () => {
    const { page, untilSeen, close } = await stage.open('/keys', { clock: true });
    await buttonOf(page, 'Create key').first().click();
    await dialogOf(page).getByLabel('Name').fill('Made in the browser');
    await dialogOf(page).getByLabel('Tags').fill('eu, paid');
    await dialogOf(page).getByRole('button', { name: 'Create key' }).dblclick();
    const done = buttonOf(page, 'I have kept it');
    await done.waitFor();
    const secret = (await dialogOf(page).locator('code').textContent()) ?? '';
    stage.keepSecret(secret);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Copy secret' }).click();
    // The clipboard belongs to a page in front, which a headless one always is.
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(secret);
    const [file] = await Promise.all([page.waitForEvent('download'), buttonOf(page, 'Download').click()]);
    const [id, key] = (await readFile(await file.path(), 'utf8')).trimEnd().split('\n');
    expect(file.suggestedFilename()).toBe(`${id?.replace('API_KEY_ID=', '')}.env`);
    expect(key).toBe(`API_KEY=${secret}`);
    await done.click();
    await page.getByRole('heading', { name: 'Made in the browser', level: 1 }).waitFor();
    expect(await page.content()).not.toContain(secret);
    await page.getByText('No request has used this key yet.').waitFor();

    const { body } = await stage.fleet.admin.call('GET', '/consumer-api-key?q=Made%20in%20the%20browser');
    expect(body.apiKeys).toMatchObject([{ name: 'Made in the browser', tags: ['eu', 'paid'] }]);
    expect(await stage.use(secret, 3)).toEqual([200, 200, 200]);
    await untilSeen(page.getByText('3 requests in the last 24 hours: 0 limited, 0 failed.'));
    await page.getByRole('cell', { name: '/orders' }).waitFor();
    await close();
  });

  it('hands the secret over by a link where that is chosen, and so does its rotation', async () => {
    const { page, close } = await stage.open('/keys?create=true');
    await dialogOf(page).getByLabel('Name').fill('Handed over');
    const secrets: string[] = [];
    for (const button of ['Create key', 'Rotate key']) {
      await dialogOf(page).getByLabel('Hand the secret over').selectOption({ label: DAY_LINK });
      await dialogOf(page).getByLabel('Note for the consumer').fill('for you');
      await dialogOf(page).getByRole('button', { name: button }).click();
      await buttonOf(page, 'I have the link').waitFor();
      const link = (await dialogOf(page).locator('code').textContent()) ?? '';
      const [made, token] = link.split('#');
      expect(made).toBe(`${stage.url}/tollgate/self/handover`);
      const shown = await page.content();
      const { secret } = await reveal(token);
      stage.keepSecret(secret);
      expect(shown).not.toContain(secret);
      expect(await stage.use(secret, 1)).toEqual([200]);
      secrets.push(secret);
      await buttonOf(page, 'I have the link').click();
      await page.getByRole('heading', { name: 'Handed over', level: 1 }).waitFor();
      expect(await page.content()).not.toContain(token);
      if (button === 'Create key') await buttonOf(page, 'Rotate').click();
    }
    expect(new Set(secrets).size).toBe(2);
    await close();
  });

  it('says beside the field what is wrong, and loses nothing that was typed', async () => {
    const { page, close } = await stage.open('/keys?create=true');
    await dialogOf(page).getByLabel('Name').fill('Typed');
    await dialogOf(page).getByLabel('Tags').fill('Not A Tag!');
    await dialogOf(page).getByRole('button', { name: 'Create key' }).click();
    await dialogOf(page)
      .getByText(/^tags\[0\] must be/)
      .waitFor();
    expect(await dialogOf(page).getByLabel('Tags').getAttribute('aria-invalid')).toBe('true');
    expect(await dialogOf(page).getByLabel('Name').inputValue()).toBe('Typed');
    await close();
  });
});

describe('the list of keys', () => {
  it('is searched and filtered by an address that can be shared', async () => {
    await makePlan('listed', 100);
    await makeKey({ name: 'Shop one', externalId: 'listed', rateLimitId: 'listed' });
    await makeKey({ name: 'Shop two', externalId: 'listed' });
    await makeKey({ name: 'Shop three', externalId: 'listed', enabled: false });
    const { page, close } = await stage.open('/keys?externalId=listed');
    const names = () =>
      page.getByRole('table').locator('tbody tr[aria-rowindex] td a[title]').allInnerTexts();
    await page.getByText('2 keys · 1 disabled or expired key not shown').waitFor();
    await until(async () => (await names()).join() === 'Shop two,Shop one');
    await buttonOf(page, 'Show all').click();
    await until(async () => (await names()).length === 3);
    await page.getByLabel('Plan', { exact: true }).selectOption('listed');
    await until(async () => (await names()).join() === 'Shop one');
    await page.getByLabel('Plan', { exact: true }).selectOption('');
    await page.getByRole('button', { name: 'Name' }).click();
    await until(async () => (await names()).join() === 'Shop one,Shop three,Shop two');
    await page.getByLabel('Search keys').fill('three');
    await until(async () => (await names()).join() === 'Shop three');
    expect(new URL(page.url()).search).toBe('?externalId=listed&status=all&sort=name&order=asc&q=three');
    await page.reload();
    await until(async () => (await names()).join() === 'Shop three');
    await page.getByLabel('Search keys').fill('nothing has this');
    await page.getByText('No key matches').waitFor();
    await buttonOf(page, 'Clear filters').last().click();
    await until(() => new URL(page.url()).search === '');
    await close();
  });

  it('changes the selected keys, or all that match, after a dry run', async () => {
    const ids: string[] = [];
    for (const name of ['Bulk a', 'Bulk b', 'Bulk c'])
      ids.push((await makeKey({ name, externalId: 'bulk' })).id);
    const { page, close, accessibilityFaults } = await stage.open('/keys?externalId=bulk&status=all');
    for (const name of ['Bulk a', 'Bulk c']) await page.getByLabel(`Select ${name}`).check();
    await buttonOf(page, 'Change selected…').click();
    await buttonOf(page, 'Check first').click();
    await dialogOf(page).getByText('This disables 2 keys').waitFor();
    expect(await accessibilityFaults()).toEqual([]);
    await buttonOf(page, 'Disable: 2 keys').click();
    await dialogOf(page).getByText('2 of 2 keys. Done.').waitFor();
    await buttonOf(page, 'Close').last().click();
    const states = async () => {
      const { body } = await stage.fleet.admin.call(
        'GET',
        '/consumer-api-key?externalId=bulk&sort=name&order=asc',
      );
      return body.apiKeys.map(({ enabled }: { enabled: boolean }) => enabled);
    };
    expect(await states()).toEqual([false, true, false]);

    await buttonOf(page, 'Change all 3 keys that match…').click();
    await dialogOf(page).getByLabel('Action').selectOption('add-tags');
    await dialogOf(page).getByLabel('Tags').fill('Wrong!');
    await buttonOf(page, 'Check first').click();
    await dialogOf(page)
      .getByText(/^tags\[0\] must be/)
      .waitFor();
    await dialogOf(page).getByLabel('Tags').fill('chosen');
    await buttonOf(page, 'Check first').click();
    await dialogOf(page).getByText('This adds the tags to 3 keys.').waitFor();
    // Another key that matches meanwhile is not changed unseen.
    await makeKey({ name: 'Bulk d', externalId: 'bulk' });
    await buttonOf(page, 'Add tags: 3 keys').click();
    await dialogOf(page).getByRole('alert').waitFor();
    await buttonOf(page, 'Check first').click();
    await buttonOf(page, 'Add tags: 4 keys').click();
    await dialogOf(page).getByText('4 of 4 keys. Done.').waitFor();
    await close();
  });

  it('makes three kinds of requests for a page of keys, however many there are', async () => {
    for (let made = 0; made < 30; made += 1) await makeKey({ name: `Many ${made}`, externalId: 'many' });
    const { page, requests, close } = await stage.open('/keys?externalId=many');
    await page.getByText('30 keys').waitFor();
    await page.getByText('none').first().waitFor();
    const asked = requests.filter((request) => /\/consumer-api-key\?|\/api-keys\/usage/.test(request));
    // The list, the number of those that are not shown, and the usage; each may be asked again as time goes by.
    expect(new Set(asked).size).toBe(3);
    await close();
  });
});

describe('a long list', () => {
  beforeAll(async () => {
    await makePlan('long', 100);
    for (let made = 0; made < LONG; made += 10)
      await Promise.all(
        Array.from({ length: 10 }, (_, one) => makeKey({ name: `Long ${made + one}`, rateLimitId: 'long' })),
      );
  });

  it('shows each of its rows on a phone on the way down and up, and after Back', async () => {
    const { page, close } = await stage.open('/keys?rateLimitId=long', { width: 390 });
    await scrollToLastRow(page);
    expect(await rowsInSight(page, -450)).toEqual(EVERY);
    expect(await rowsInSight(page, 450)).toEqual(EVERY);
    // Back leads to the same rows.
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight / 2)');
    await until(async () => (await rowsInSight(page, 0)).length > 5);
    const [, , row = 0] = await rowsInSight(page, 0);
    await page
      .locator(`tr[aria-rowindex="${row + 2}"]`)
      .getByRole('link')
      .click();
    await page.getByRole('heading', { name: /^Long/, level: 1 }).waitFor();
    await goBack(page);
    await until(async () => (await rowsInSight(page, 0)).includes(row));
    await close();
  });

  it('has its rows wherever one scrolls to, also below other content', async () => {
    const { page, untilLoaded, close } = await stage.open('/plans/long');
    await scrollToLastRow(page);
    await untilLoaded();
    expect(await rowsInSight(page, -700)).toEqual(EVERY);
    await close();
  });
});

describe('a key', () => {
  it('is rotated with both secrets valid, until the previous one is ended', async () => {
    const { id, secret } = await makeKey({ name: 'To rotate' });
    const { page, close } = await stage.open('/keys');
    await page.getByRole('link', { name: 'To rotate' }).click();
    await buttonOf(page, 'Rotate').click();
    await dialogOf(page).getByText('No request used this key since').waitFor();
    await dialogOf(page).getByLabel('1 hour').check();
    await dialogOf(page).getByRole('button', { name: 'Rotate key' }).dblclick();
    await buttonOf(page, 'I have kept it').waitFor();
    await goBack(page);
    const newSecret = (await dialogOf(page).locator('code').textContent()) ?? '';
    stage.keepSecret(newSecret);
    await buttonOf(page, 'I have kept it').click();
    expect(page.url()).toMatch(new RegExp(`/keys/${id}$`));
    expect([await stage.use(secret, 1), await stage.use(newSecret, 1)]).toEqual([[200], [200]]);
    await buttonOf(page, 'End now').click();
    await dialogOf(page).getByRole('button', { name: 'End the previous secret' }).click();
    await page.getByText('No rotation is under way').waitFor();
    expect([await stage.use(secret, 1), await stage.use(newSecret, 1)]).toEqual([[401], [200]]);
    await close();
  });

  it('that is limited is given more room, and its window is reset', async () => {
    await makePlan('narrow', 2);
    const { id, secret } = await makeKey({ name: 'Narrow', rateLimitId: 'narrow' });
    expect(await stage.use(secret, 3)).toEqual([200, 200, 429]);
    const { page, untilSeen, close } = await stage.open(`/keys/${id}`, { clock: true });
    await page.getByText('2 / 2').waitFor();
    await buttonOf(page, 'Grant main more room').click();
    await dialogOf(page).getByLabel('Requests').fill('1');
    await dialogOf(page).getByRole('button', { name: 'Grant' }).dblclick();
    await page.getByText('2 / 3').waitFor();
    expect(await stage.use(secret, 2)).toEqual([200, 429]);
    await untilSeen(page.getByText('3 / 3'));
    await buttonOf(page, 'Reset main').click();
    await dialogOf(page).getByText('The 3 of 3 that are used count no longer').waitFor();
    await dialogOf(page).getByRole('button', { name: 'Reset' }).click();
    await page.getByText('0 / 2').waitFor();
    expect(await stage.use(secret, 1)).toEqual([200]);
    await close();
  });

  it('shows the window of each customer, and gives more room to one of them', async () => {
    await stage.fleet.admin.call('POST', '/rate-limit/create', {
      ...{ rateLimitId: 'tenants', description: '', limit: 100, period: 'hour' },
      additionalLimits: [{ limitId: 'tenant', limit: 2, period: 'hour', per: 'customer' }],
    });
    const { id, secret } = await makeKey({ name: 'Tenants', rateLimitId: 'tenants' });
    const acme = { 'x-customer-id': 'acme' };
    expect(await stage.use(secret, 3, '/orders', acme)).toEqual([200, 200, 429]);
    const { page, close } = await stage.open(`/keys/${id}`);
    await page.getByText('0 / 2').waitFor();
    await page.getByLabel('Windows of the customer').fill('acme');
    await page.getByText('2 / 2').waitFor();
    await buttonOf(page, 'Grant tenant more room').click();
    await dialogOf(page).getByLabel('Requests').fill('5');
    await dialogOf(page).getByRole('button', { name: 'Grant' }).click();
    await page.getByText('2 / 7').waitFor();
    expect(await stage.use(secret, 1, '/orders', acme)).toEqual([200]);
    await close();
  });

  it('has another limit than its plan, for good or until an instant', async () => {
    await makePlan('overridden', 1);
    const { id, secret } = await makeKey({ name: 'Overridden', rateLimitId: 'overridden' });
    const { page, close } = await stage.open(`/keys/${id}`);
    await buttonOf(page, 'Override main').click();
    await dialogOf(page).getByLabel('Limit', { exact: true }).fill('3');
    await dialogOf(page).getByLabel('Until').fill('2098-01-02T03:04:05');
    await dialogOf(page).getByRole('button', { name: 'Save' }).click();
    await page.getByText('0 / 3').waitFor();
    const { overrides } = await stage.fleet.admin.detail(id);
    expect(overrides).toEqual({ main: { limit: 3, until: '2098-01-02T02:04:05Z' } });
    expect(await stage.use(secret, 4)).toEqual([200, 200, 200, 429]);
    await close();
  });

  it('shows its secret on a click, with one entry in the audit log, for 30 seconds', async () => {
    const { id, secret } = await makeKey({ name: 'To reveal' });
    const { page, requests, close } = await stage.open(`/keys/${id}`);
    await page.getByText('No rotation is under way').waitFor();
    await page.clock.install();
    await buttonOf(page, 'Reveal').click();
    await page.getByText(secret).waitFor();
    // Real time goes on beside the jumps.
    await page.clock.fastForward(15_000);
    expect(await page.getByText(secret).count()).toBe(1);
    await page.clock.fastForward(16_000);
    await page.getByText(secret).waitFor({ state: 'detached' });
    expect(requests.filter((request) => request.endsWith(id))).toHaveLength(2);
    const log = `/tollgate/audit-log?action=key.show-secret&targetId=${id}`;
    expect((await stage.fleet.admin.call('GET', log)).body.entries).toHaveLength(1);
    await close();
  });

  it('changed elsewhere meanwhile shows both versions, and keeps the chosen one', async () => {
    const { id } = await makeKey({ name: 'Contested', tags: ['old'] });
    const { page, close } = await stage.open(`/keys/${id}`);
    await buttonOf(page, 'Edit').click();
    await dialogOf(page).getByLabel('Name').fill('Mine');
    await stage.fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { name: 'Theirs', tags: ['theirs'] });
    await dialogOf(page).getByRole('button', { name: 'Save' }).click();
    await dialogOf(page).getByRole('heading', { name: 'This key has changed since you opened it' }).waitFor();
    expect(await dialogOf(page).locator('tbody tr').allInnerTexts()).toEqual([
      'Name\tContested\tTheirs\tMine',
      'Tags\told\ttheirs\told',
    ]);
    await dialogOf(page).getByRole('button', { name: 'Save mine over it' }).click();
    await page.getByRole('heading', { name: 'Mine', level: 1 }).waitFor();
    // What was not touched is not written.
    expect(await stage.fleet.admin.detail(id)).toMatchObject({ name: 'Mine', tags: ['theirs'] });
    await close();
  });

  it('is disabled and deleted after what that means was said in numbers', async () => {
    const { id, secret } = await makeKey({ name: 'To delete' });
    await stage.use(secret, 4);
    const { page, close } = await stage.open(`/keys/${id}`);
    await buttonOf(page, 'More actions').click();
    await page.getByRole('menuitem', { name: 'Disable' }).click();
    await dialogOf(page).getByText('4 requests used this key since').waitFor();
    await dialogOf(page).getByLabel('Reason').fill('Ärger ⚠ by mail');
    await dialogOf(page).getByRole('button', { name: 'Disable key' }).click();
    await page.getByText('disabled', { exact: true }).waitFor();
    expect(await stage.use(secret, 1)).toEqual([401]);
    await page.getByRole('cell', { name: 'Ärger ⚠ by mail' }).waitFor();
    expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('More actions');
    await buttonOf(page, 'More actions').click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await dialogOf(page)
      .getByLabel(/^Type /)
      .fill('nope');
    await dialogOf(page).getByRole('button', { name: 'Delete key' }).click();
    await dialogOf(page)
      .getByText(`Type ${id.slice(-4)} to delete the key.`)
      .waitFor();
    await dialogOf(page)
      .getByLabel(/^Type /)
      .fill(id.slice(-4));
    await dialogOf(page).getByRole('button', { name: 'Delete key' }).click();
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor();
    expect((await stage.fleet.admin.call('GET', `/consumer-api-key/${id}`)).status).toBe(404);
    await close();
  });
});

describe('the sign in', () => {
  it('rejects an unknown token, and opens the wanted page with a known one', async () => {
    const tab = await stage.open('/keys', { token: null });
    const { page } = tab;
    await page.getByLabel('Token', { exact: true }).fill('tga_unknown');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('The gateway does not know this token').waitFor();
    expect(await tab.accessibilityFaults()).toEqual([]);
    await tab.signIn(stage.rootToken);
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to Tollgate' }).waitFor();
    await tab.close();
  });
});

describe('a session', () => {
  it('of a token that may only read has nothing to click that would be rejected', async () => {
    const { id } = await makeKey({ name: 'Only read' });
    const { secret } = await stage.makeToken({ name: 'Reader', scopes: ['read-only'] });
    const { page, close } = await stage.open(`/keys/${id}`, { token: secret });
    await page.getByText('No rotation is under way').waitFor();
    for (const name of [
      'Edit',
      'Rotate',
      'More actions',
      'Grant main more room',
      'Reset main',
      'Override main',
      'Reveal',
    ])
      expect(await buttonOf(page, name).count()).toBe(0);
    await page.goto(`${stage.url}/tollgate/console/keys?create=true`);
    await page.getByRole('link', { name: 'Only read' }).waitFor();
    expect([await buttonOf(page, 'Create key').count(), await dialogOf(page).count()]).toEqual([0, 0]);
    await close();
  });

  it('whose token is deleted ends, and goes on at the same place with another', async () => {
    const { adminTokenId, secret } = await stage.makeToken({ name: 'Short', scopes: ['read-only'] });
    const tab = await stage.open('/keys?status=all', { token: secret, clock: true });
    await stage.fleet.admin.call('DELETE', `/tollgate/admin-token/${adminTokenId}`);
    await tab.untilSeen(tab.page.getByText('The token is no longer valid.'));
    await tab.signIn(stage.rootToken);
    await tab.page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor();
    expect(tab.page.url()).toMatch(/\/keys\?status=all$/);
    await tab.close();
  });

  it('keeps what it shows while Redis is down, and says how old it is', async () => {
    await makeKey({ name: 'Still there', externalId: 'away' });
    const { page, untilSeen, close } = await stage.open('/keys?externalId=away', { clock: true });
    await page.getByRole('link', { name: 'Still there' }).waitFor();
    const stale = page.getByText('This is how it was');
    const bringBack = stage.takeRedisUnavailable();
    try {
      await untilSeen(stale);
      expect(await page.getByRole('link', { name: 'Still there' }).count()).toBe(1);
    } finally {
      bringBack();
    }
    await untilSeen(stale, false);
    await close();
  });
});

describe('text from outside', () => {
  const HTML = '<img src=x onerror=alert(1)>';
  const BACKWARDS = '\u202Egnp.exe\u202C';
  const EMOJI = '🔑'.repeat(120);

  it('is shown as text on every page', async () => {
    const { id, secret } = await makeKey({
      name: HTML,
      externalId: HTML,
      metadata: { [HTML]: `</script>${HTML}`, [BACKWARDS]: EMOJI },
    });
    for (const name of ['\u200Fgnp.exe', EMOJI]) await makeKey({ name, externalId: HTML });
    await stage.use(secret, 1, '/%3Cimg%20src=x%20onerror=alert(1)%3E', { 'x-customer-id': HTML });
    await stage.fleet.admin.call('POST', `/consumer-api-key/${id}/limits/reset`, {
      reason: `${HTML}${BACKWARDS}`,
    });
    await stage.fleet.admin.call('POST', '/rate-limit/create', {
      ...{ rateLimitId: 'hostile', limit: 1, period: 'day', description: HTML },
    });
    const { page, untilLoaded, close } = await stage.open(`/keys?externalId=${encodeURIComponent(HTML)}`);
    await page.getByRole('link', { name: HTML }).waitFor();
    expect(await page.getByRole('link', { name: EMOJI }).count()).toBe(1);
    await page.getByRole('link', { name: HTML }).click();
    await page.getByRole('heading', { name: HTML, level: 1 }).waitFor();
    await page.getByRole('cell', { name: HTML, exact: true }).waitFor();
    await page.getByRole('cell', { name: `${HTML}${BACKWARDS}` }).waitFor();
    await page.getByText(`</script>${HTML}`).waitFor();
    await page.getByRole('button', { name: 'View as table' }).click();
    for (const name of ['Overview', 'Plans', 'Usage', 'Audit log', 'Admin tokens', 'System']) {
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
      await page.getByRole('heading', { name, level: 1 }).waitFor();
      await untilLoaded();
      expect(await page.locator('[onerror]').count()).toBe(0);
    }
    await close();
  });
});

describe('the dialogs of a key', () => {
  it('break no rule of WCAG 2.2 AA, also in the dark theme and a narrow window', async () => {
    const { id } = await makeKey({ name: 'Accessible', tags: ['eu'], expiresAt: '2098-01-01T00:00:00Z' });
    const tab = await stage.open('/keys?create=true');
    const { page } = tab;
    const faults: string[] = [];
    const check = async (what: string) => {
      await dialogOf(page).waitFor();
      await tab.untilLoaded();
      const broken = [...(await tab.accessibilityFaults('looks'))];
      await page.setViewportSize({ width: 360, height: 900 });
      await page.emulateMedia({ colorScheme: 'dark' });
      broken.push(...(await tab.accessibilityFaults()));
      faults.push(...broken.map((fault) => `${what}: ${fault}`));
      await page.emulateMedia({ colorScheme: 'light' });
      await page.setViewportSize({ width: 1280, height: 900 });
    };
    await check('create');
    await page.goto(`${stage.url}/tollgate/console/keys/${id}`);
    for (const action of ['Edit', 'Rotate', 'Grant main more room', 'Reset main', 'Override main']) {
      await buttonOf(page, action).click();
      await check(action);
      await page.keyboard.press('Escape');
      await dialogOf(page).waitFor({ state: 'detached' });
      // The focus is back at the button that opened the dialog.
      await buttonOf(page, action).and(page.locator(':focus')).waitFor();
    }
    await page.setViewportSize({ width: 360, height: 900 });
    expect(
      await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
    ).toBe(0);
    expect(faults).toEqual([]);
    await tab.close();
  });
});
