import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { onPath } from './debian-package.ts';

const run = promisify(execFile);

/** The version from PyPI. It stays until it is changed here. */
const VERSION = '4.32.5';
const CACHE = resolve(import.meta.dirname, '../../node_modules/.cache');
const INSTALL_DEADLINE_MS = 300_000;

/** The program, or why there is none: without Python, its package venv or PyPI, what it would check is left out. */
export type Schemathesis = { readonly program: string } | { readonly leftOutBecause: string };

/** Schemathesis in a virtual environment, which is made once and kept with the modules. */
export async function findSchemathesis(): Promise<Schemathesis> {
  const python = await onPath('python3');
  if (python === undefined) return { leftOutBecause: 'there is no python3 on the PATH' };
  const directory = join(CACHE, `schemathesis-${VERSION}`);
  const program = join(directory, 'bin', 'schemathesis');
  // A lock, because other runs may want it at the same time; the mark, because an install may end half-way.
  const install = `set -e
test ! -e "$1/complete" || exit 0
mkdir -p "$1"
"$2" -m venv --clear "$1"
"$1/bin/pip" install --quiet --disable-pip-version-check "schemathesis==${VERSION}"
touch "$1/complete"`;
  try {
    await run('flock', [import.meta.filename, 'sh', '-c', install, 'sh', directory, python], {
      timeout: INSTALL_DEADLINE_MS,
    });
    return { program };
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr) : String(error);
    return { leftOutBecause: `it can not be installed: ${said.trim().split('\n').at(-1)}` };
  }
}
