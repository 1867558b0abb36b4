import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { bodyOf, createManagementClient, type ManagementClient } from '../../src/client/management-client.ts';
import type { Scope } from '../../src/permissions/scopes.ts';
import { Admin } from '../support/admin.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { until } from '../support/until.ts';
import { type ConsoleStage, startConsole } from './browser-fixture.ts';
import { RECEIVER_SETTINGS, startReceiver, type WebhookReceiver } from './webhook-receiver.ts';

let receiver: WebhookReceiver;
let stage: ConsoleStage;
let root: ManagementClient;
beforeAll(async () => {
  receiver = await startReceiver();
  stage = await startConsole(RECEIVER_SETTINGS);
  root = createManagementClient({ url: stage.url, token: ROOT_TOKEN });
}, 300_000);
afterAll(async () => {
  await stage?.stop();
  await receiver?.stop();
});

const createToken = (name: string, scopes: readonly Scope[]) => stage.makeToken({ name, scopes });

async function createWebhook(description: string, events: string[]): Promise<string> {
  const body = { url: `${receiver.url}/hooks`, description, events };
  const made = await bodyOf(root.POST('/tollgate/webhook/create', { body }));
  stage.keepSecret(made.secret);
  return made.webhookId;
}

const createPlan = (rateLimitId: string) => stage.fleet.admin.makePlan(rateLimitId, 10, 'hour');

/** The secret in the open dialog, which is closed then. */
async function secretShownOnce(page: Page): Promise<string> {
  await page.getByText('It can’t be shown again').waitFor();
  const secret = (await page.locator('[role=dialog] code').first().textContent()) ?? '';
  stage.keepSecret(secret);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'I have kept it' }).click();
  expect(await page.getByText(secret).count()).toBe(0);
  return secret;
}

const dialogOf = (page: Page) => page.getByRole('dialog');
const action = async (page: Page, name: string) => {
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('menuitem', { name }).click();
};

describe('the pages of webhooks', () => {
  it('make one, show its faults beside the fields and its secret once', async () => {
    const { page, close, accessibilityFaults } = await stage.open('/webhooks');
    await page.getByRole('button', { name: 'Create webhook' }).click();
    const dialog = dialogOf(page);
    await dialog.getByLabel('Address').fill('http://169.254.169.254/latest');
    await dialog.getByText('Plan', { exact: true }).click();
    await dialog.getByLabel('tollgate.plan.created').check();
    await dialog.getByRole('button', { name: 'Create webhook' }).click();
    await dialog.getByText('leads to an address that is not public').waitFor();
    // In sight, although the button is at the end of a form that scrolls.
    const fault = dialog.getByText('Nothing was saved');
    await until(async () => {
      const [box, frame] = [await fault.boundingBox(), await dialog.boundingBox()];
      return box !== null && frame !== null && box.y > frame.y;
    });
    expect(await dialog.getByLabel('Address').getAttribute('aria-invalid')).toBe('true');
    expect(await accessibilityFaults()).toEqual([]);
    await dialog.getByLabel('Address').fill(`${receiver.url}/made`);
    await dialog.getByLabel('All: tollgate.plan.*').check();
    expect(await dialog.getByLabel('tollgate.plan.deleted').isDisabled()).toBe(true);
    await dialog.getByLabel('Description').fill('Made here');
    await dialog.getByRole('button', { name: 'Add header' }).click();
    await dialog.getByLabel('Name of header 1').fill('Host');
    await dialog.getByLabel('Value of header 1').fill('elsewhere');
    await dialog.getByRole('button', { name: 'Create webhook' }).click();
    await dialog.getByText('Host is set by the gateway.').waitFor();
    await dialog.getByLabel('Name of header 1').fill('X-Team');
    await dialog.getByRole('button', { name: 'Create webhook' }).dblclick();
    expect(await secretShownOnce(page)).toMatch(/^whsec_/);
    await page.getByRole('link', { name: 'Made here' }).click();
    await page.getByText('x-team: ***').waitFor();
    const { webhooks } = await bodyOf(root.GET('/tollgate/webhook'));
    expect(webhooks.map(({ description, events }) => [description, events])).toEqual([
      ['Made here', ['tollgate.plan.*']],
    ]);
    await close();
  });

  it('test one, show what was sent, and send it again', async () => {
    const webhookId = await createWebhook('Tested', ['tollgate.key.*']);
    const { page, close, untilSeen, accessibilityFaults } = await stage.open(`/webhooks/${webhookId}`);
    await page.getByText('Nothing was sent yet').waitFor();
    await page.getByRole('button', { name: 'Send a test' }).click();
    await untilSeen(page.getByRole('row', { name: /^tollgate.webhook.test Delivered 204/ }));
    const sent = () => receiver.received.filter(({ body }) => body.includes(webhookId));
    const [first] = sent();
    await page.getByRole('button', { name: 'tollgate.webhook.test' }).click();
    await dialogOf(page).getByText('"message": "The webhook works."').waitFor();
    await dialogOf(page)
      .getByText(first?.id ?? 'none', { exact: true })
      .waitFor();
    expect(await accessibilityFaults()).toEqual([]);
    await page.getByRole('button', { name: 'Send again' }).click();
    await until(() => sent().length === 2);
    expect(sent()[1]).toEqual(first);
    await close();
  });

  it('rotate, disable, enable, edit and delete one', async () => {
    const webhookId = await createWebhook('Changed', ['tollgate.key.*']);
    const path = { webhookId };
    const shown = () => bodyOf(root.GET('/tollgate/webhook/{webhookId}', { params: { path } }));
    const { page, close } = await stage.open(`/webhooks/${webhookId}`);
    await action(page, 'Rotate the secret');
    await page.getByText('Both secrets sign for a day').waitFor();
    await page.getByLabel('Reason').fill('leaked');
    await page.getByRole('button', { name: 'Rotate secret' }).click();
    await secretShownOnce(page);
    await page.getByText('beside the previous one').waitFor();
    await action(page, 'Disable');
    await page.getByText('such events are not sent later').waitFor();
    await page.getByRole('button', { name: 'Disable webhook' }).click();
    // While a dialog is open, the page behind it has no roles.
    await page.locator('button', { hasText: 'Send a test' }).waitFor({ state: 'detached' });
    expect((await shown()).enabled).toBe(false);
    await action(page, 'Enable');
    await page.getByRole('button', { name: 'Enable webhook' }).click();
    await page.getByRole('button', { name: 'Send a test' }).waitFor();
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Only events about records').fill('eu');
    const body = { description: 'Changed by another' };
    await bodyOf(root.PATCH('/tollgate/webhook/{webhookId}', { params: { path }, body }));
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('This webhook has changed since you opened it').waitFor();
    expect(await shown()).toMatchObject({ ...body, onlyTags: [], enabled: true });
    await page.getByRole('button', { name: 'Cancel' }).click();
    await action(page, 'Delete');
    await page.getByText('There is no way back').waitFor();
    await page.getByLabel('Reason').fill('not needed');
    await page.getByRole('button', { name: 'Delete webhook' }).click();
    await page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor();
    await page.locator('a', { hasText: 'Changed by another' }).waitFor({ state: 'detached' });
    const audit = await new Admin(stage.url).call('GET', `/tollgate/audit-log?targetId=${webhookId}`);
    const reasons = audit.body.entries.map(({ reason }: { reason: string | null }) => reason);
    expect(reasons).toEqual(['not needed', null, null, null, 'leaked', null]);
    await close();
  });

  it('offer a token only what it may do and hear', async () => {
    const webhookId = await createWebhook('Of tokens', ['tollgate.admin_token.*']);
    const reader = await createToken('Reads webhooks', ['webhooks:read']);
    const first = await stage.open(`/webhooks/${webhookId}`, { token: reader.secret });
    await first.page.getByRole('heading', { name: 'Of tokens' }).waitFor();
    expect(await first.page.getByRole('button', { name: /Edit|Send a test|More actions/ }).count()).toBe(0);
    await first.page.getByRole('link', { name: '← Webhooks' }).click();
    await first.page.getByRole('link', { name: 'Of tokens' }).waitFor();
    expect(await first.page.getByRole('button', { name: 'Create webhook' }).count()).toBe(0);
    await first.close();

    const writer = await createToken('Hears of keys', ['webhooks:read', 'webhooks:write', 'keys:read']);
    const second = await stage.open(`/webhooks/${webhookId}`, { token: writer.secret });
    await second.page.getByRole('button', { name: 'More actions' }).click();
    expect(await second.page.getByRole('menuitem').allInnerTexts()).toEqual(['Delete']);
    expect(await second.page.getByRole('button', { name: /Edit|Send a test/ }).count()).toBe(0);
    await second.page.goto(`${stage.url}/tollgate/console/webhooks?create`);
    await dialogOf(second.page).getByText('Key', { exact: true }).waitFor();
    expect(
      await dialogOf(second.page)
        .getByText(/^Everything|^Admin token/)
        .count(),
    ).toBe(0);
    await second.close();
  });
});

describe('the audit log', () => {
  const streams = (requests: readonly string[]) =>
    requests.filter((request) => request.startsWith('GET /tollgate/events')).length;
  const reads = (requests: readonly string[]) =>
    requests.filter((request) => request.startsWith('GET /tollgate/audit-log')).length;

  it('is live by the one stream of the tab, and has a new entry', async () => {
    const { page, requests, close } = await stage.open('/audit');
    await page.getByText(' · live').waitFor();
    await createPlan('streamed');
    await page.getByRole('link', { name: 'streamed' }).waitFor();
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.getByRole('link', { name: 'Audit log' }).click();
    await page.getByText(' · live').waitFor();
    expect(streams(requests)).toBe(1);
    await close();
  });

  it('is polled for a token that may not hear all of it, and opens no stream', async () => {
    const { secret } = await createToken('Audits', ['audit:read', 'plans:read']);
    const { page, requests, untilSeen, close } = await stage.open('/audit', { token: secret, clock: true });
    await page.getByRole('table', { name: 'audit log' }).waitFor();
    const before = reads(requests);
    await createPlan('polled');
    await untilSeen(page.getByRole('link', { name: 'polled' }));
    expect(reads(requests)).toBeGreaterThan(before);
    expect(await page.getByText(' · live').count()).toBe(0);
    expect(streams(requests)).toBe(0);
    await close();
  });

  it('ends its stream at sign-out', async () => {
    const { page, close } = await stage.open('/audit');
    await page.getByText(' · live').waitFor();
    const ended = page.waitForEvent('requestfailed', (request) => request.url().includes('/tollgate/events'));
    await page.getByRole('button', { name: 'Sign out' }).click();
    await ended;
    await page.getByLabel('Token', { exact: true }).waitFor();
    await close();
  });
});
