import { mkdirSync } from 'node:fs';
import { StartFault } from './start-fault.ts';

/** Makes a directory that only its owner may enter, unless it is there. Throws a `StartFault` where it can't be made. */
export function makePrivateDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw notWritable(`The directory ${directory} can not be made`, error);
  }
}

/** What to throw where something below `DATA_DIR` can't be written. The first words say what. */
export function notWritable(what: string, cause: unknown): StartFault {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown error';
  return new StartFault(`${what} (${code}): let this user write there, or set DATA_DIR to another place.`, {
    cause,
  });
}
