import { mkdirSync } from 'node:fs';
import { StartFault } from './start-fault.ts';

/** Makes a directory that only its owner may enter, unless it is there. Throws a `StartFault` where it can't be made. */
export function makePrivateDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    throw new StartFault(
      `The directory ${directory} can not be made (${code}): let this user write there, or set DATA_DIR to another place.`,
      { cause: error },
    );
  }
}
