import { closeSync, fchmodSync, openSync, unlinkSync, writeSync } from 'node:fs';
import type { Command } from 'commander';
import { CommandFault } from '../command-fault.ts';

/** The option of a command that makes a secret, or several. */
export function makesSecret(command: Command, what = 'the secret'): Command {
  return command.option(
    '--secret-file <path>',
    `write ${what} to a new file of mode 600 instead of standard output`,
  );
}

/**
 * Runs what makes a secret. With a file, that is made first, so that no secret is made that could not be kept; it is taken away where the secret isn't
 * made. Resolves with what is to be shown: without the secret where the file has it.
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

/** Runs work that may have secrets to keep in a file. It is taken away where nothing was kept, or the work rejects. */
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
    // wx: what is there already may be another secret, or a link to another place.
    const descriptor = openSync(file, 'wx', 0o600);
    fchmodSync(descriptor, 0o600);
    return descriptor;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    const reason = code === 'EEXIST' ? 'it is there already' : code;
    throw new CommandFault('fault', `The file ${file} can not be made (${reason}).`, { cause: error });
  }
}
