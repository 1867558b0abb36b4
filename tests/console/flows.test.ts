import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { type ConsoleStage, startConsole } from './browser-fixture.ts';

let stage: ConsoleStage;
beforeAll(async () => {
  stage = await startConsole();
}, 300_000);
afterAll(() => stage?.stop());

describe('the sign in', () => {
  it('rejects an unknown token, and opens the wanted page with a known one', async () => {
    const tab = await stage.open('/keys', { token: null });
    const { page } = tab;
    await page.getByLabel('Token', { exact: true }).fill('tga_unknown');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('The gateway does not know this token').waitFor();
    expect(await tab.accessibilityFaults()).toEqual([]);
    await tab.signIn(ROOT_TOKEN);
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to Tollgate' }).waitFor();
    await tab.close();
  });
});
