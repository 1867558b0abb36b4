import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { requireProgram } from './debian-package.ts';

const run = promisify(execFile);
const CACHE = resolve(import.meta.dirname, '../../node_modules/.cache');
const INSTALL_DEADLINE_MS = 300_000;

/** The folder of the programs of a virtual environment with a package from PyPI. It is made once and kept with the modules. */
export async function pythonEnvironment(name: string, version: string): Promise<string> {
  const python = await requireProgram('python3', 'python3-venv');
  const directory = join(CACHE, `${name}-${version}`);
  // A lock, because other runs may want it at the same time; the mark, because an install may end half-way.
  const install = `set -e
test ! -e "$1/complete" || exit 0
mkdir -p "$1"
"$2" -m venv --clear "$1"
"$1/bin/pip" install --quiet --disable-pip-version-check "$3"
touch "$1/complete"`;
  try {
    const args = ['sh', '-c', install, 'sh', directory, python, `${name}==${version}`];
    await run('flock', [import.meta.filename, ...args], { timeout: INSTALL_DEADLINE_MS });
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
  return join(directory, 'bin');
}
