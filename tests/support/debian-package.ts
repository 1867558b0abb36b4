import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const POLICY = '/usr/sbin/policy-rc.d';

/**
 * The path of a program: from the PATH, else from the Debian package that has it, installed with apt-get where we are root.
 * Throws with what to install when there is no way to get it.
 */
export async function requireProgram(program: string, debianPackage: string): Promise<string> {
  const found = (await onPath(program)) ?? (await installed(program, debianPackage));
  if (found === undefined) {
    throw new Error(
      `The tests need ${program}, which is not on the PATH (Debian: apt-get install ${debianPackage}).`,
    );
  }
  return found;
}

/** The path of the first executable of this name on the PATH, or undefined. */
export async function onPath(program: string): Promise<string | undefined> {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(directory, program);
    if (directory !== '' && (await isExecutable(path))) return path;
  }
  return undefined;
}

/** Whether Debian's packages can be installed: as root, on a system that has apt-get. */
export async function canInstall(): Promise<boolean> {
  return process.getuid?.() === 0 && (await isExecutable('/usr/bin/apt-get'));
}

async function installed(program: string, debianPackage: string): Promise<string | undefined> {
  if (!(await canInstall())) return undefined;
  await install(debianPackage);
  return onPath(program);
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/**
 * Under a lock, because Jest's workers may want packages at the same time. Debian starts a service with its package unless a
 * policy forbids it: we want the program, no server on its port. The lists of packages are read anew only where they are missing or name a version
 * that is gone.
 */
const INSTALL = `set -e
if [ ! -e ${POLICY} ]; then
  printf '#!/bin/sh\\nexit 101\\n' > ${POLICY}
  chmod 755 ${POLICY}
  trap 'rm -f ${POLICY}' EXIT
fi
install() { apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$1"; }
install "$1" || { apt-get update && install "$1"; }`;

async function install(debianPackage: string): Promise<void> {
  await run('flock', ['/usr/bin/apt-get', 'sh', '-c', INSTALL, 'sh', debianPackage], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    maxBuffer: 64 * 1024 * 1024,
  });
}
