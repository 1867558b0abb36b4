import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { StartFault } from './start-fault.ts';

/** Makes a directory that only its owner may enter, unless it is there. Throws a `StartFault` where it can't be made. */
export function makePrivateDirectory(directory: string): void {
  try {
    makeWithParents(directory);
  } catch (error) {
    throw notWritable(`The directory ${directory} can not be made`, error);
  }
}

/** Not Node's own `recursive`: it never returns where a directory can't be made although its parent exists, as in /proc. */
function makeWithParents(directory: string): void {
  const parent = dirname(directory);
  if (!existsSync(parent)) makeWithParents(parent);
  if (isDirectory(directory)) return;
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!isDirectory(directory)) throw error;
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** What to throw where something below `DATA_DIR` can't be written. The first words say what. */
export function notWritable(what: string, cause: unknown): StartFault {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown error';
  return new StartFault(`${what} (${code}): let this user write there, or set DATA_DIR to another place.`, {
    cause,
  });
}
