import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { onPath, requireProgram } from './debian-package.ts';

const run = promisify(execFile);
const CACHE = resolve(import.meta.dirname, '../../node_modules/.cache');
const INSTALL_DEADLINE_MS = 300_000;

/** The folder of programs of a virtual environment, or why there is none. */
export type FoundEnvironment = { readonly bin: string } | { readonly leftOutBecause: string };

/**
 * The folder of the programs of a virtual environment with packages from PyPI (`httpx==0.28.1`). It is made once and kept with the
 * modules.
 */
export async function pythonEnvironment(...packages: readonly string[]): Promise<string> {
  const python = await requireProgram('python3', 'python3-venv');
  const directory = join(CACHE, packages.join('+').replaceAll('==', '-'));
  // A lock, because other runs may want it at the same time; the mark, because an install may end half-way. One pip installs all of them: to
  // install it as well takes longer than most packages.
  const install = `set -e
directory=$1 pip=$2 python=$3; shift 3
test ! -e "$directory/complete" || exit 0
test -x "$pip/bin/pip" || "$python" -m venv --clear "$pip"
"$python" -m venv --clear --without-pip "$directory"
"$pip/bin/pip" --python "$directory/bin/python" install --quiet --disable-pip-version-check --no-compile "$@"
touch "$directory/complete"`;
  try {
    const args = ['sh', '-c', install, 'sh', directory, join(CACHE, 'pip'), python, ...packages];
    await run('flock', [import.meta.filename, ...args], { timeout: INSTALL_DEADLINE_MS });
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
  return join(directory, 'bin');
}

/** The same, for a check that is left out without Python, its package venv or PyPI. */
export async function findPythonEnvironment(...packages: readonly string[]): Promise<FoundEnvironment> {
  if ((await onPath('python3')) === undefined) return { leftOutBecause: 'there is no python3 on the PATH' };
  try {
    return { bin: await pythonEnvironment(...packages) };
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr) : String(error);
    return { leftOutBecause: `its packages can not be installed: ${said.trim().split('\n').at(-1)}` };
  }
}
