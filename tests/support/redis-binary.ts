import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const NAMES = ['redis-server', 'valkey-server'];
const POLICY = '/usr/sbin/policy-rc.d';

/**
 * The path of a Redis server's executable: from the PATH, else installed with apt-get where we are root on Debian.
 * Undefined when there is no way to get one.
 */
export async function redisBinary(): Promise<string | undefined> {
  const present = await onPath(NAMES);
  if (present !== undefined || process.getuid?.() !== 0 || !(await isExecutable('/usr/bin/apt-get'))) {
    return present;
  }
  await install();
  return onPath(NAMES);
}

async function onPath(names: readonly string[]): Promise<string | undefined> {
  const directories = (process.env.PATH ?? '').split(delimiter).filter((directory) => directory !== '');
  for (const path of names.flatMap((name) => directories.map((directory) => join(directory, name)))) {
    if (await isExecutable(path)) {
      return path;
    }
  }
  return undefined;
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Debian starts a service with its package unless a policy forbids it: we want the binary, no server on 6379. */
async function install(): Promise<void> {
  const forbidden = await writeFile(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755, flag: 'wx' }).then(
    () => true,
    () => false,
  );
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  try {
    await run('apt-get', ['update'], { env });
    await run('apt-get', ['install', '-y', '--no-install-recommends', 'redis-server'], { env });
  } finally {
    if (forbidden) {
      await rm(POLICY, { force: true });
    }
  }
}
