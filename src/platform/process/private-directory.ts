import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { systemCodeOf } from '../system-code.ts';
import { StartFault } from './start-fault.ts';

/** Creates a directory that only its owner may enter, unless it exists. Throws a `StartFault` if it can't be created. */
export function makePrivateDirectory(directory: string): void {
  try {
    makeWithParents(directory);
  } catch (error) {
    throw notWritable(`The directory ${directory} can not be made`, error);
  }
}

/** Replaces Node's `recursive`, which never returns if a directory can't be created although its parent exists, as in /proc. */
function makeWithParents(directory: string): void {
  const parent = dirname(directory);
  if (!existsSync(parent)) makeWithParents(parent);
  if (isDirectory(directory)) return;
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it in the meantime.
    if (!isDirectory(directory)) throw error;
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** The error if something below `DATA_DIR` can't be written. `what` is the beginning of its message. */
export function notWritable(what: string, cause: unknown): StartFault {
  const reason = `${what} (${systemCodeOf(cause)})`;
  return new StartFault(`${reason}: let this user write there, or set DATA_DIR to another place.`, { cause });
}
