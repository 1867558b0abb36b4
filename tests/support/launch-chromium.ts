import { type Browser, chromium } from 'playwright-core';
import { onPath, requireProgram } from './debian-package.ts';

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

/** Starts a Chromium without a window. */
export async function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: await findChromium(), args: ['--disable-dev-shm-usage'] });
}
