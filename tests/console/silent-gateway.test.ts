import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import { type ConsoleStage, startConsole } from './browser-fixture.ts';

/** After which a page no longer waits for the gateway. */
const TIMEOUT_MS = 30_000;
/** After which a page reads its list again, also while it hears events. */
const LONGEST_POLL_MS = 60_000;

let stage: ConsoleStage;
beforeAll(async () => {
  stage = await startConsole();
}, 300_000);
afterEach(() => resume());
afterAll(() => stage?.stop());

/** The gateway keeps its connections and takes new ones, but responds to nothing. */
const silence = () => signal('SIGSTOP');
const resume = () => signal('SIGCONT');

function signal(name: NodeJS.Signals): void {
  for (const { pid } of stage?.fleet.replicas ?? []) process.kill(pid, name);
}

it('the last data stays with its age while the gateway is silent', async () => {
  await stage.makeKey({ name: 'Seen' });
  const { page, untilSeen, close } = await stage.open('/keys', { clock: true });
  const key = page.getByRole('link', { name: 'Seen' });
  const notice = page.getByText('The gateway or its store does not respond. This is how it was');
  await key.waitFor();
  silence();
  const asked = page.waitForRequest((request) => request.url().includes('/consumer-api-key'));
  await page.clock.fastForward(LONGEST_POLL_MS);
  await asked;
  await page.clock.fastForward(TIMEOUT_MS);
  await notice.waitFor();
  expect(await key.isVisible()).toBe(true);
  resume();
  await untilSeen(notice, false);
  await close();
});

it('a key that a silent gateway makes is made once, and its form can be left meanwhile', async () => {
  const { page, close } = await stage.open('/keys?create=true', { clock: true });
  const keys: (string | undefined)[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') keys.push(request.headers()['idempotency-key']);
  });
  const dialog = page.getByRole('dialog');
  const fault = dialog.getByText('The gateway does not respond. What you typed is kept; try again.');
  const create = dialog.getByRole('button', { name: 'Create key' });
  const kept = page.getByRole('button', { name: 'I have kept it' });
  await dialog.getByLabel('Name').fill('Made once');
  silence();
  const asked = page.waitForRequest((request) => request.method() === 'POST');
  await create.click();
  await asked;
  await page.clock.fastForward(TIMEOUT_MS);
  await fault.waitFor();
  expect(await dialog.getByRole('button', { name: 'Cancel' }).isEnabled()).toBe(true);
  resume();
  // While the first request is being performed, a retry is rejected. The button is gone as soon as one is not.
  await until(async () => {
    if (await create.isVisible()) await create.click({ timeout: 1000 }).catch(() => undefined);
    return kept.isVisible();
  });
  stage.keepSecret((await dialog.locator('code').textContent()) ?? '');
  expect(keys.length).toBeGreaterThan(1);
  expect(new Set(keys).size).toBe(1);
  const { body } = await stage.fleet.admin.call('GET', '/consumer-api-key?q=Made%20once');
  expect(body.apiKeys).toHaveLength(1);
  await kept.click();
  await close();
});
