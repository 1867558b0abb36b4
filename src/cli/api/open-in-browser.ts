import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** The command of each system that opens an address in the user's browser. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
  linux: ['xdg-open'],
};

/** Opens an address in the user's browser, and does not wait for it. Resolves with the program that is missing; undefined if there is one. */
export async function openInBrowser(address: string): Promise<string | undefined> {
  const [program = 'xdg-open', ...args] = OPENERS[process.platform] ?? [];
  const child = spawn(program, [...args, address], { stdio: 'ignore', detached: true });
  const isMissing = await once(child, 'spawn').then(
    () => false,
    () => true,
  );
  child.unref();
  return isMissing ? program : undefined;
}
