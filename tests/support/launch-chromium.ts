import { type Browser, chromium } from 'playwright-core';
import { onPath, requireProgram } from './debian-package.ts';
import { LONGEST_WAIT_MS } from './until.ts';

/** The same browser without the parts of a desktop: it takes three quarters of the CPU time, and is Playwright's own choice where there is no window. */
const HEADLESS_SHELL = 'chromium-headless-shell';

/** The path of a Chromium, installed where it is missing and can be. Throws with what to install otherwise. */
export async function findChromium(): Promise<string> {
  return (
    (await onPath(HEADLESS_SHELL)) ??
    (await onPath('chromium')) ??
    (await requireProgram(HEADLESS_SHELL, HEADLESS_SHELL))
  );
}

/** Starts a Chromium without a window. What a page shows late is waited for as long as by `until`. */
export async function launchChromium(): Promise<Browser> {
  const executablePath = await findChromium();
  const browser = await chromium.launch({ executablePath, args: ['--disable-dev-shm-usage'] });
  return browser.on('context', (context) => context.setDefaultTimeout(LONGEST_WAIT_MS));
}
