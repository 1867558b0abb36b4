import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

/** The file that starts the command of this checkout. */
export const COMMAND = resolve(import.meta.dirname, '../../../bin/tollgate.js');

/** How a shell starts `tollgate` from this checkout, wherever that is. */
export const COMMAND_LINE = `exec ${quoted(process.execPath)} ${quoted(COMMAND)}`;

/** Puts `tollgate` into a folder of the PATH, as an installation does. */
export async function putCommandInto(directory: string): Promise<void> {
  await writeFile(join(directory, 'tollgate'), `#!/bin/sh\n${COMMAND_LINE} "$@"\n`, { mode: 0o755 });
}

/** A text as one word of a shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
