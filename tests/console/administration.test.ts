import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { bodyOf, createManagementClient, type ManagementClient } from '../../src/client/management-client.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { until } from '../support/until.ts';
import { type ConsoleStage, startConsole } from './browser-fixture.ts';

/** What people and clients may write, and a page, a chart or a file must show as text. */
const HOSTILE = {
  name: `<img src=x onerror=alert(1)> \u200fgnp.exe ${'\u{1f680}'.repeat(64)}`,
  customer: "=cmd|' /C calc'!A0",
  path: '/v1/<script>alert(1)</script>',
  reason: '"><img src=x onerror=alert(2)>',
} as const;

let stage: ConsoleStage;
let root: ManagementClient;
beforeAll(async () => {
  stage = await startConsole();
  root = createManagementClient({ url: stage.url, token: ROOT_TOKEN });
}, 300_000);
afterAll(() => stage?.stop());

async function createPlan(rateLimitId: string, more: object = {}): Promise<void> {
  const body = { rateLimitId, description: '', limit: 1000, period: 'hour', ...more };
  await bodyOf(root.POST('/rate-limit/create', { body }));
}

const createKey = (name: string, more: object) => stage.makeKey({ name, ...more });

/** Waits until what was sent is in the usage of all keys. */
async function untilCounted(rateLimitId: string, requests: number): Promise<void> {
  const query = { interval: 'total', rateLimitId } as const;
  await until(async () => {
    const series = await bodyOf(root.GET('/api-keys/usage', { params: { query } }));
    return typeof series !== 'string' && series.rows[0]?.requests === requests;
  });
}

const heading = (page: Page, name: string) => page.getByRole('heading', { name, level: 1 }).waitFor();

async function downloaded(page: Page, button: string): Promise<string> {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: button }).click(),
  ]);
  return readFile(await download.path(), 'utf8');
}

describe('the pages of plans', () => {
  it('makes a plan of several limits, and shows what is wrong beside the field', async () => {
    const { page, close, accessibilityFaults } = await stage.open('/plans?create');
    await heading(page, 'Create plan');
    await page.getByRole('button', { name: 'Create plan' }).click();
    await page.getByText('Give the plan an id.').waitFor();
    await page.getByLabel('Id', { exact: true }).fill('several');
    await page.getByLabel('Requests').fill('1,000');
    await page.getByLabel('In each').fill('fortnight');
    await page.getByRole('button', { name: 'Add limit' }).click();
    const burst = page.getByRole('group', { name: 'Limit 1' });
    await burst.getByLabel('Name').fill('burst');
    const named = page.getByRole('group', { name: 'Limit “burst”' });
    await named.getByLabel('Requests').fill('10');
    await page.getByRole('button', { name: 'Create plan' }).click();
    await page.getByText('It must be second, minute, hour').waitFor();
    expect(await page.getByLabel('In each').first().getAttribute('aria-invalid')).toBe('true');
    expect(await accessibilityFaults()).toEqual([]);
    await page.getByLabel('In each').first().fill('day');
    await page.getByText('Allows 10 a second and 1,000 a day.').waitFor();
    await named.getByRole('button', { name: 'Only for some requests' }).click();
    await named.getByLabel('Path').fill('/V1/%73earch');
    await named.getByText('Is saved as /v1/search').waitFor();
    await page.getByLabel('Path of the request').fill('/v1//search;x');
    await page.getByText('Costs 1, counted in main, burst. Also read as /v1/search.').waitFor();
    await page.getByRole('button', { name: 'Create plan' }).click();
    await heading(page, 'several');
    expect(
      (await root.GET('/rate-limit/{rateLimitId}', { params: { path: { rateLimitId: 'several' } } })).data,
    ).toMatchObject({
      limit: 1000,
      period: 'day',
      additionalLimits: [{ limitId: 'burst', limit: 10, period: 'second', match: [{ path: '/v1/search' }] }],
    });
    await close();
  });

  it('saves an edit after showing it, never over that of another administrator', async () => {
    await createPlan('edited', { additionalLimits: [{ limitId: 'burst', limit: 10, period: 'second' }] });
    const path = { rateLimitId: 'edited' };
    const { page, close, accessibilityFaults } = await stage.open('/plans/edited?edit');
    await page.getByLabel('Requests').first().fill('2000');
    await page.getByRole('button', { name: 'Review changes' }).click();
    await page.getByRole('row', { name: 'Limit 1,000 an hour 2,000 an hour' }).waitFor();
    await page.getByText('No requests by the 0 keys under this plan.').waitFor();
    await page.getByText('10 a second would have limited more than this').waitFor();
    expect(await accessibilityFaults()).toEqual([]);

    await bodyOf(
      root.PATCH('/rate-limit/{rateLimitId}', { params: { path }, body: { description: 'by another' } }),
    );
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('This plan has changed since you opened it').waitFor();
    expect((await root.GET('/rate-limit/{rateLimitId}', { params: { path } })).data?.limit).toBe(1000);
    await page.getByRole('button', { name: 'Show both versions' }).click();
    await page.getByRole('row', { name: 'Description none by another' }).waitFor();
    await bodyOf(
      root.PATCH('/rate-limit/{rateLimitId}', { params: { path }, body: { description: 'once more' } }),
    );
    await page.getByRole('button', { name: 'Save yours over it' }).click();
    await page.getByRole('button', { name: 'Show both versions' }).click();
    await page.getByRole('row', { name: 'Description none once more' }).waitFor();
    await page.getByRole('button', { name: 'Save yours over it' }).click();
    const saved = async () => (await root.GET('/rate-limit/{rateLimitId}', { params: { path } })).data;
    await until(async () => (await saved())?.limit === 2000);
    expect((await saved())?.description).toBe('');
    await close();
  });

  it('deletes a plan after saying how many keys there are and where they go', async () => {
    await createPlan('doomed');
    await createPlan('heir', { limit: 7, period: 'minute' });
    const { id } = await createKey('moves on', { rateLimitId: 'doomed' });
    const { page, close } = await stage.open('/plans/doomed');
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('1 key is bound to it').waitFor();
    await page.getByLabel('They get the plan').selectOption('heir');
    await page.getByText('It allows 7 a minute').waitFor();
    await page.getByRole('button', { name: 'Move 1 key and delete' }).click();
    await heading(page, 'Plans');
    const key = await root.GET('/consumer-api-key', { params: { query: { rateLimitId: 'heir' } } });
    expect(key.data?.apiKeys.map(({ consumerApiKeyId }) => consumerApiKeyId)).toEqual([id]);
    await close();
  });

  it('keeps a plan that has keys which the token does not see, and says so before', async () => {
    await createPlan('shared');
    await createKey('of others', { rateLimitId: 'shared', tags: ['us'] });
    const scopes = ['plans:write', 'plans:read', 'keys:read'];
    const { secret } = await stage.makeToken({ name: 'Only eu', scopes, onlyTags: ['eu'] });
    const { page, close } = await stage.open('/plans/shared', { token: secret });
    await page.getByText('and for keys that this token does not see').waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No key that this token sees is bound to it.').waitFor();
    await page.getByRole('button', { name: 'Delete plan' }).click();
    await page.getByText('Keys that this admin token does not see are bound').waitFor();
    await close();
  });

  it('shows what a limit in shadow would have rejected, and of whom', async () => {
    await createPlan('tried', {
      additionalLimits: [{ limitId: 'next', limit: 2, period: 'hour', mode: 'shadow' }],
    });
    const { secret } = await createKey('tries', { rateLimitId: 'tried' });
    await stage.use(secret, 5);
    await untilCounted('tried', 5);
    const { page, close, accessibilityFaults } = await stage.open('/plans/tried');
    await page.getByText('It would have rejected 3 of 5 allowed requests in 24 hours (60%).').waitFor();
    await page.getByRole('row', { name: 'tries 3 5' }).waitFor();
    expect(await accessibilityFaults()).toEqual([]);
    await close();
  });
});

describe('the page of usage', () => {
  it('filters, groups and compares, and shows the same to others by its address', async () => {
    await createPlan('seen', { limit: 3 });
    const { secret } = await createKey('seen key', { rateLimitId: 'seen' });
    await stage.use(secret, 4);
    await untilCounted('seen', 4);
    const tab = await stage.open('/usage');
    const ofSingleKeys: string[] = [];
    tab.page.on('request', (request) => {
      if (request.url().includes('/consumer-api-key/')) ofSingleKeys.push(request.url());
    });
    await tab.page.getByRole('combobox', { name: 'Plan' }).selectOption('seen');
    await tab.page.getByLabel('Table by').selectOption('key');
    await tab.page.getByLabel('Compare with before').check();
    await tab.page.getByText('4 requests in the last 24 hours: 1 limited, 0 failed.').waitFor();
    await tab.page.getByRole('row', { name: /^seen key 4 3 1 0/ }).waitFor();
    expect(ofSingleKeys).toEqual([]);
    await tab.page.getByText('Times are in Europe/Berlin.').waitFor();
    expect(await tab.accessibilityFaults()).toEqual([]);
    const address = new URL(tab.page.url());
    await tab.close();

    const other = await stage.open(`/usage${address.search}`);
    await other.page.getByText('4 requests in the last 24 hours: 1 limited, 0 failed.').waitFor();
    await other.page.getByText('The time before had 0 requests.').waitFor();
    await other.page.getByLabel('Table by').selectOption('');
    await other.page.getByRole('table', { name: 'usage by time' }).locator('tbody button').first().click();
    await other.page.getByText(/: 4 requests, 1 limited, 0 failed\.$/).waitFor();
    const moment = new URL(other.page.url());
    expect(Object.fromEntries(moment.searchParams)).toMatchObject({ interval: 'hour', rateLimitId: 'seen' });
    await other.page.goto(moment.href);
    await other.page.getByText(/: 4 requests, 1 limited, 0 failed\.$/).waitFor();
    expect(await other.accessibilityFaults()).toEqual([]);
    await other.page.getByRole('button', { name: 'View as table' }).click();
    await other.page.getByRole('region', { name: 'The chart as a table' }).waitFor();
    await other.page.getByRole('button', { name: 'Clear filters' }).click();
    await until(() => !other.page.url().includes('rateLimitId'));
    await other.close();
  });

  it('takes dates that are typed, also where they are no range on the way', async () => {
    const { page, close } = await stage.open('/usage?from=2026-11-20&to=2026-11-28');
    const [first, last] = [page.getByLabel('First day'), page.getByLabel('Last day')];
    const dates = () => ['from', 'to'].map((name) => new URL(page.url()).searchParams.get(name));
    await last.press('ArrowRight');
    await page.keyboard.type('2');
    expect(await last.inputValue()).toBe('2026-11-02');
    expect(await last.getAttribute('aria-invalid')).toBe('true');
    await page.keyboard.type('5');
    await until(() => dates().join() === '2026-11-20,2026-11-25');
    await page.keyboard.type('2027');
    await until(() => dates().join() === '2026-11-20,2027-11-25');
    // A day that is deleted stays so, and the range as it was.
    await first.press('ArrowRight');
    await page.keyboard.press('Delete');
    expect(await first.inputValue()).toBe('');
    expect(dates()).toEqual(['2026-11-20', '2027-11-25']);
    await page.keyboard.type('18');
    await until(() => dates().join() === '2026-11-18,2027-11-25');
    expect(await last.getAttribute('aria-invalid')).toBe('false');
    expect(await page.getByLabel('Range').inputValue()).toBe('custom');
    // Dates that are no range stay on the way from one to the other, and no longer.
    await first.press('ArrowRight');
    await page.keyboard.press('Delete');
    await last.focus();
    expect(await first.inputValue()).toBe('');
    await page.getByLabel('Chart by').focus();
    await until(async () => (await first.inputValue()) === '2026-11-18');
    expect([await last.inputValue(), dates()]).toEqual(['2027-11-25', ['2026-11-18', '2027-11-25']]);
    await close();
  });

  it('offers what fits where a range is too large', async () => {
    const { page, close } = await stage.open('/usage?from=2020-01-01&to=2026-01-01&interval=hour');
    await page.getByText('This is more than 10,000 buckets of time').waitFor();
    await page.getByRole('button', { name: 'Chart by day' }).click();
    await page.getByText('No requests').first().waitFor();
    expect(page.url()).toContain('interval=day');
    await close();
  });
});

describe('hostile texts', () => {
  it('are shown as text in tables, charts and files', async () => {
    await createPlan('hostile');
    const { id, secret } = await createKey(HOSTILE.name, { rateLimitId: 'hostile' });
    await stage.use(secret, 2, encodeURI(HOSTILE.path), { 'x-customer-id': HOSTILE.customer });
    await bodyOf(
      root.PATCH('/consumer-api-key/{consumerApiKeyId}', {
        params: { path: { consumerApiKeyId: id }, header: { 'X-Audit-Reason': HOSTILE.reason } },
        body: { enabled: false },
      }),
    );
    await untilCounted('hostile', 2);
    const { page, close } = await stage.open('/usage?rateLimitId=hostile&groupBy=key');
    // The browser translates none of them, nor the texts that React goes on changing.
    expect(await page.evaluate('document.documentElement.translate')).toBe(false);
    // A name that is trimmed in the table is whole in the document.
    await page.getByRole('link', { name: HOSTILE.name }).waitFor();
    await page.getByLabel('Table by').selectOption('customer');
    await page.getByText(HOSTILE.customer, { exact: true }).waitFor();
    const file = await downloaded(page, 'Download CSV');
    expect(file).toContain(`'${HOSTILE.customer}`);
    // By it spreadsheets know that the file is in UTF-8.
    expect(file.startsWith('\ufeff')).toBe(true);
    await page.getByLabel('Table by').selectOption('endpoint');
    await page.getByText(encodeURI(HOSTILE.path)).or(page.getByText(HOSTILE.path)).waitFor();
    await page.goto(`${stage.url}/tollgate/console/plans/hostile`);
    await page.getByRole('link', { name: HOSTILE.name }).waitFor();
    await page.goto(`${stage.url}/tollgate/console/audit?targetId=${id}`);
    await page.getByText(HOSTILE.reason).waitFor();
    await page.getByRole('button', { name: 'changed a key' }).click();
    await page.getByRole('row', { name: 'enabled yes no' }).waitFor();
    expect(await page.locator('img[src="x"], script:not([src])').count()).toBe(0);
    await close();
  });
});

describe('the page of the audit log', () => {
  it('is filtered in its address, verified, and downloaded as a whole', async () => {
    await createPlan('audited');
    const { page, close, accessibilityFaults } = await stage.open('/audit');
    await page.getByRole('link', { name: 'audited' }).waitFor();
    expect(await accessibilityFaults()).toEqual([]);
    await page.getByLabel('Target').fill('audited');
    await page.getByLabel('Target').press('Enter');
    await page.getByText('1 entry', { exact: true }).waitFor();
    expect(page.url()).toContain('targetId=audited');
    const lines = (await downloaded(page, 'Download CSV')).trim().split('\r\n');
    expect(lines).toHaveLength(2);
    expect(lines[1]).toContain('plan.create');
    await page.getByLabel('Action').selectOption('key.delete');
    await page.getByText('No entry matches').waitFor();
    await page.getByRole('button', { name: 'Clear the filters' }).click();
    await page.getByRole('link', { name: 'audited' }).waitFor();
    await page.getByRole('button', { name: 'Verify the log' }).click();
    await page.getByText('The log is intact').waitFor();
    await close();
  });
});

describe('the page of admin tokens', () => {
  it('shows the secret of a new token once, rotates and revokes it', async () => {
    const { page, close, accessibilityFaults } = await stage.open('/tokens');
    await page.getByRole('button', { name: 'Create token' }).click();
    await page.getByRole('button', { name: 'Create token' }).last().click();
    await page.getByText('It must be').first().waitFor();
    await page.getByLabel('Name').fill('Night shift');
    await page.getByRole('button', { name: /^Support/ }).click();
    expect(await accessibilityFaults()).toEqual([]);
    await page.getByRole('button', { name: 'Create token' }).last().dblclick();
    await page.getByText('it can not be shown again').waitFor();
    const secret = (await page.locator('[role=dialog] code').textContent()) ?? '';
    stage.keepSecret(secret);
    const client = createManagementClient({ url: stage.url, token: secret });
    expect((await client.GET('/tollgate/whoami')).data?.scopes).toContain('limits:write');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'I have kept it' }).click();
    expect(await page.getByText(secret).count()).toBe(0);
    await page.getByRole('row', { name: /^Night shift .* Support/ }).waitFor();
    expect(await page.getByRole('row', { name: /^Night shift/ }).count()).toBe(1);

    await page.getByRole('button', { name: 'Actions for Night shift' }).click();
    await page.getByRole('menuitem', { name: 'Rotate…' }).click();
    await page.getByLabel('Now').check();
    await page.getByText('For a secret that has leaked').waitFor();
    await page.getByRole('button', { name: 'Rotate token' }).click();
    await page.getByRole('button', { name: 'I have kept it' }).click();
    expect((await client.GET('/tollgate/whoami')).response.status).toBe(401);

    await page.getByRole('button', { name: 'Actions for Night shift' }).click();
    await page.getByRole('menuitem', { name: 'Revoke…' }).click();
    await page.getByText('There is no way back').waitFor();
    await page.getByRole('button', { name: 'Revoke token' }).click();
    // While a dialog is open, the page behind it has no roles.
    await page.locator('tr', { hasText: 'Night shift' }).waitFor({ state: 'detached' });
    await close();
  });

  it('lets a token sign out that may no longer be used from where it is', async () => {
    const { adminTokenId, secret } = await stage.makeToken({ name: 'moved away', scopes: ['read-only'] });
    const { page, close } = await stage.open('/', { token: secret });
    await page.getByRole('link', { name: 'Keys' }).first().waitFor();
    const path = { adminTokenId };
    const body = { allowedIps: ['192.0.2.1'] };
    await bodyOf(root.PATCH('/tollgate/admin-token/{adminTokenId}', { params: { path }, body }));
    await page.reload();
    await page.getByText('The admin token may not be used from this address.').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token').waitFor();
    await close();
  });

  it('is not for a token without its scope, which sees no dead buttons elsewhere', async () => {
    await createPlan('looked-at');
    const { secret } = await stage.makeToken({ name: 'Looks only', scopes: ['plans:read', 'audit:read'] });
    const { page, close } = await stage.open('/plans/looked-at', { token: secret });
    await page.getByRole('table', { name: 'Limits' }).waitFor();
    expect(await page.getByRole('button', { name: 'Delete' }).count()).toBe(0);
    expect(await page.getByRole('link', { name: 'Edit plan' }).count()).toBe(0);
    expect(await page.getByText('Requests by outcome').count()).toBe(0);
    await page.getByRole('link', { name: 'Plans', exact: true }).click();
    await page.getByRole('link', { name: 'looked-at' }).waitFor();
    expect(await page.getByRole('link', { name: 'Create plan' }).count()).toBe(0);
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('heading', { name: 'Near a limit' }).waitFor();
    expect(await page.getByRole('main').getByRole('link').allInnerTexts()).toEqual([]);
    await page.goto(`${stage.url}/tollgate/console/tokens`);
    await page.getByText('This token may not see admin tokens').waitFor();
    await page.goto(`${stage.url}/tollgate/console/usage`);
    await page.getByText('It lacks the scope usage:read').waitFor();
    await close();
  });
});

describe('a tab that is older than the gateway', () => {
  it('says which part can’t be loaded any more, and keeps the others', async () => {
    await createPlan('older');
    const { secret } = await createKey('Older', { rateLimitId: 'older' });
    await stage.use(secret, 1);
    await untilCounted('older', 1);
    const { page, close, accessibilityFaults } = await stage.open('/keys');
    // Only the files of the newer console are there.
    await page.route(/\/assets\/(command-palette|chart-canvas)-/, (route) => route.fulfill({ status: 404 }));
    await page.getByRole('link', { name: 'Usage' }).click();
    await page.getByText('The chart could not be loaded.').waitFor();
    await page.getByRole('button', { name: 'View as table' }).click();
    await page.getByRole('region', { name: 'The chart as a table' }).waitFor();
    await page.keyboard.press('Control+k');
    const dialog = page.getByRole('dialog', { name: 'Go to' });
    await dialog.getByText('The search can’t be shown').waitFor();
    await dialog.getByRole('button', { name: 'Load again' }).waitFor();
    expect(await accessibilityFaults()).toEqual([]);
    await page.keyboard.press('Escape');
    await heading(page, 'Usage');
    await close();
  });
});
