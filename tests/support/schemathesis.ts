import { join } from 'node:path';
import { onPath } from './debian-package.ts';
import { pythonEnvironment } from './python-environment.ts';

/** The version from PyPI. It stays until it is changed here. */
const VERSION = '4.32.5';

/** The program, or why there is none: without Python, its package venv or PyPI, what it would check is left out. */
export type Schemathesis = { readonly program: string } | { readonly leftOutBecause: string };

/** Schemathesis in a virtual environment, which is made once and kept with the modules. */
export async function findSchemathesis(): Promise<Schemathesis> {
  const python = await onPath('python3');
  if (python === undefined) return { leftOutBecause: 'there is no python3 on the PATH' };
  try {
    return { program: join(await pythonEnvironment('schemathesis', VERSION), 'schemathesis') };
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr) : String(error);
    return { leftOutBecause: `it can not be installed: ${said.trim().split('\n').at(-1)}` };
  }
}
