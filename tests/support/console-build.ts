import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

const ROOT = resolve(import.meta.dirname, '../..');

/** Builds unless nothing in the source is newer. */
const BUILD_WHERE_OUTDATED = `
if [ -e dist/console/index.html ] && [ -e dist/portal/portal.html ] && [ -z "$(find src/console src/portal src/client vite.config.ts package.json -newer dist/console/index.html)" ]
then exit 0
fi
exec npm run -s build:console -- --logLevel warn`;

/** Builds the console where its source is newer than what is built. */
export async function buildConsoleWhereOutdated(): Promise<void> {
  await runAsOnlyConsoleBuild(['sh', '-c', BUILD_WHERE_OUTDATED]);
}

/** Runs a command that builds the console while no other test does: test files run at the same time, and builds have one output folder. */
export async function runAsOnlyConsoleBuild(
  command: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  await promisify(execFile)('flock', ['vite.config.ts', ...command], {
    cwd: ROOT,
    env,
    maxBuffer: 16 * 1024 * 1024,
  });
}
