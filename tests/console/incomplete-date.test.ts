import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { until } from '../support/until.ts';
import { type ConsoleStage, startConsole } from './browser-fixture.ts';

let stage: ConsoleStage;
beforeAll(async () => {
  stage = await startConsole();
}, 300_000);
afterAll(() => stage?.stop());

const FAULT = 'Enter a complete date that exists, or clear it.';
const EXPIRES_AT = '2098-01-31T10:00:00Z';

const expiryOf = async (id: string) => (await stage.fleet.admin.detail(id)).expiresAt;
const dialogOf = (page: Page) => page.getByRole('dialog');
const press = (page: Page, name: string) => dialogOf(page).getByRole('button', { name }).click();

/** Types a day, or a month where that comes first, and leaves the rest of the date empty. */
async function typeInPart(field: Locator): Promise<void> {
  await field.focus();
  await field.pressSequentially('12');
  expect(await isIncomplete(field)).toBe(true);
}

const isIncomplete = (field: Locator) =>
  field.evaluate((input) => (input as unknown as { validity: { badInput: boolean } }).validity.badInput);

it.each<[string, string, string, (page: Page) => Promise<void>]>([
  ['a new key', 'Expires', 'Create key', async (page) => page.getByLabel('Name').fill('Half a date')],
  ['a new token', 'Valid until the end of', 'Create token', async () => undefined],
  ['an override', 'Until', 'Save', (page) => page.getByRole('button', { name: 'Override main' }).click()],
])('nothing is sent while a date is typed in part: %s', async (what, label, submit, open) => {
  const paths: Readonly<Record<string, string>> = {
    'a new key': '/keys?create=true',
    'a new token': '/tokens?create',
    'an override': `/keys/${(await stage.makeKey({ name: 'To override' })).id}`,
  };
  const { page, requests, close } = await stage.open(paths[what]);
  await open(page);
  await dialogOf(page).locator(':focus').waitFor();
  const field = dialogOf(page).getByLabel(label);
  await typeInPart(field);
  await press(page, submit);
  await dialogOf(page).getByText(FAULT).waitFor();
  expect(await field.getAttribute('aria-invalid')).toBe('true');
  expect(requests.filter((request) => !request.startsWith('GET '))).toEqual([]);
  await close();
});

it('a date that a button of the form completes is no longer incomplete', async () => {
  const { page, close } = await stage.open('/tokens?create');
  const field = dialogOf(page).getByLabel('Valid until the end of');
  const fault = dialogOf(page).getByText(FAULT);
  await typeInPart(field);
  await press(page, 'Create token');
  await fault.waitFor();
  await press(page, '30 days');
  await fault.waitFor({ state: 'detached' });
  expect(await field.getAttribute('aria-invalid')).toBe('false');
  await close();
});

it('an expiry that is deleted in part stays as it was, until all of it is deleted', async () => {
  const { id } = await stage.makeKey({ name: 'Expires', expiresAt: EXPIRES_AT });
  const { page, close } = await stage.open(`/keys/${id}`);
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  const field = dialogOf(page).getByLabel('Expires');
  const fault = dialogOf(page).getByText(FAULT);
  await field.focus();
  await page.keyboard.press('Backspace');
  await press(page, 'Save');
  await fault.waitFor();
  // The browser puts the focus back to the first part.
  while (await isIncomplete(field)) {
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Backspace');
  }
  await fault.waitFor({ state: 'detached' });
  expect(await expiryOf(id)).toBe(EXPIRES_AT);
  await press(page, 'Save');
  await until(async () => (await expiryOf(id)) === null);
  await close();
});

it('the expiry of many keys is named before it changes, and an incomplete one changes none', async () => {
  const { id } = await stage.makeKey({ name: 'Of many', externalId: 'many', expiresAt: EXPIRES_AT });
  const { page, requests, close } = await stage.open('/keys?externalId=many');
  await page.getByLabel('Select Of many').check();
  await page.getByRole('button', { name: 'Change selected…' }).click();
  await dialogOf(page).getByLabel('Action').selectOption('set-expiry');
  const field = dialogOf(page).getByLabel('Expires');
  const sent = () => requests.filter((request) => request.startsWith('POST '));
  await typeInPart(field);
  await press(page, 'Check first');
  await dialogOf(page).getByText(FAULT).waitFor();
  expect(sent()).toEqual([]);
  await field.fill('');
  await press(page, 'Check first');
  await dialogOf(page).getByText('This removes the expiry of 1 key.').waitFor();
  // It stays empty for the page, which keeps the result of the check.
  await typeInPart(field);
  await press(page, 'Set expiry: 1 key');
  await dialogOf(page).getByText(FAULT).waitFor();
  expect(sent()).toHaveLength(1);
  await field.fill('2099-01-31T11:00:00');
  await press(page, 'Check first');
  await dialogOf(page)
    .getByText('This sets the expiry of 1 key to 31 Jan 2099, 11:00:00 (Europe/Berlin).')
    .waitFor();
  await press(page, 'Set expiry: 1 key');
  await until(async () => (await expiryOf(id)) === '2099-01-31T10:00:00Z');
  await close();
});
