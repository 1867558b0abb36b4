import { closeSync, fchmodSync, openSync, unlinkSync, writeSync } from 'node:fs';
import type { Command } from 'commander';
import { CommandFault } from '../command-fault.ts';

/** Adds the option of a command that makes a secret, or several. */
export function makesSecret(command: Command, what = 'the secret'): Command {
  return command.option(
    '--secret-file <path>',
    `write ${what} to a new file of mode 600 instead of standard output`,
  );
}

/**
 * Runs `make`, which makes a secret. A file is created first, so that no secret is made that can't be kept, and removed if no secret is
 * made. Resolves with what the command shows: without the secret if the file has it.
 */
export async function keepSecret<T extends { readonly secret: string }>(
  file: string | undefined,
  make: () => Promise<T>,
): Promise<Omit<T, 'secret'> & { readonly secret?: string }> {
  if (file === undefined) return make();
  return withSecretFile(file, async (keep) => {
    const { secret, ...shown } = await make();
    keep(`${secret}\n`);
    return shown;
  });
}

/** Runs work that may write secrets to a new file. The file is removed if nothing was written to it. */
export async function withSecretFile<Result>(
  file: string,
  work: (keep: (text: string) => void) => Promise<Result>,
): Promise<Result> {
  const descriptor = open(file);
  let isEmpty = true;
  try {
    return await work((text) => {
      isEmpty = false;
      writeSync(descriptor, text);
    });
  } finally {
    closeSync(descriptor);
    if (isEmpty) unlinkSync(file);
  }
}

function open(file: string): number {
  try {
    // wx: an existing file may hold another secret, or be a link to another place.
    const descriptor = openSync(file, 'wx', 0o600);
    fchmodSync(descriptor, 0o600);
    return descriptor;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    const reason = code === 'EEXIST' ? 'it is there already' : code;
    throw new CommandFault('fault', `The file ${file} can not be made (${reason}).`, { cause: error });
  }
}
