import { closeSync, fchmodSync, fsyncSync, openSync, unlinkSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import { CommandFault, systemCodeOf } from '../command-fault.ts';

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

/**
 * Runs work that may write secrets to a new file. The file is removed if nothing was written to it. If it can't be written, for example
 * because the disk is full, the error has the text: the secrets are nowhere else.
 */
export async function withSecretFile<Result>(
  file: string,
  work: (keep: (text: string) => void) => Promise<Result>,
): Promise<Result> {
  const descriptor = open(file);
  let isKept = false;
  try {
    return await work((text) => {
      write(descriptor, text, file);
      isKept = true;
    });
  } finally {
    closeSync(descriptor);
    if (!isKept) unlinkSync(file);
  }
}

function open(file: string): number {
  try {
    // wx: an existing file may hold another secret, or be a link to another place.
    const descriptor = openSync(file, 'wx', 0o600);
    fchmodSync(descriptor, 0o600);
    return descriptor;
  } catch (error) {
    const code = systemCodeOf(error);
    const reason = code === 'EEXIST' ? 'it is there already' : code;
    throw new CommandFault('fault', `The file ${file} can not be made (${reason}).`, { cause: error });
  }
}

function write(descriptor: number, text: string, file: string): void {
  try {
    writeFileSync(descriptor, text);
    // Some file systems notice only now that there is no room.
    fsyncSync(descriptor);
  } catch (error) {
    throw new CommandFault(
      'fault',
      `The file ${file} can not be written (${systemCodeOf(error)}). The change was made, and what would be in the file is shown only here:\n${text.trimEnd()}`,
      { cause: error },
    );
  }
}
