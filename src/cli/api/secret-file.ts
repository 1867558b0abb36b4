import { closeSync, fchmodSync, fsyncSync, openSync, unlinkSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import { ManagementFault } from '../../client/management-fault.ts';
import { mayBeReceived } from '../../client/retrying-fetch.ts';
import { systemCodeOf } from '../../platform/system-code.ts';
import { CommandFault } from '../command-fault.ts';
import { EXIT_CODES } from '../exit-codes.ts';
import type { OutputOptions } from '../output/output.ts';
import type { Session } from './session.ts';

/** Where a command keeps the secrets that it makes. */
export interface SecretFileOptions {
  /** The new file; undefined: the command shows the secret. */
  readonly secretFile?: string | undefined;
}

/** Adds the option of a command that makes a secret, or several. */
export function makesSecret(command: Command, what = 'the secret'): Command {
  return showsOnce(command, '--secret-file, or another -o').option(
    '--secret-file <path>',
    `write ${what} to a new file of mode 600 instead of standard output`,
  );
}

/** Makes a command fail before its work if it would show only an id: what it makes is shown this once, and would be lost. */
export function showsOnce(command: Command, remedy = 'another -o'): Command {
  return command.hook('preAction', () => {
    const { output, secretFile } = command.opts<SecretFileOptions & Partial<OutputOptions>>();
    if (output === 'id' && secretFile === undefined)
      throw new CommandFault('usage', `With -o id what is shown only once would be lost: add ${remedy}.`);
  });
}

/**
 * Runs `make`, which makes a secret. A file is created first, so that no secret is made that can't be kept, and removed if no secret is
 * made. Resolves with what the command shows: without the secret if the file has it.
 */
export async function keepSecret<T extends { readonly secret?: string }>(
  session: Session,
  { secretFile }: SecretFileOptions,
  make: () => Promise<T>,
): Promise<Omit<T, 'secret'> & { readonly secret?: string }> {
  if (secretFile === undefined) {
    const made = await notingLoss(session, make());
    noteLostOutput(session);
    return made;
  }
  return withSecretFile(session, secretFile, async (keep) => {
    const { secret, ...shown } = await notingLoss(session, make());
    if (secret !== undefined) keep(`${secret}\n`);
    return shown;
  });
}

/** The same result. If it does not come, although the gateway may have made a secret, a note says so. */
export async function notingLoss<Result>({ output }: Session, making: Promise<Result>): Promise<Result> {
  return making.catch((error: unknown) => {
    if (mayBeMade(error)) output.note(LOST);
    throw error;
  });
}

/** From now on standard output gets secrets: if it can't be written, a note says that they are lost, and the exit code is 1. */
export function noteLostOutput({ output, terminal }: Session): void {
  terminal.stdout.prependListener('error', () => {
    output.note(NOT_SHOWN);
    // Also where the reader has closed the pipe, which is no fault of other commands.
    process.exitCode = EXIT_CODES.fault;
  });
}

function mayBeMade(error: unknown): boolean {
  if (error instanceof CommandFault) return false;
  if (error instanceof ManagementFault)
    return error.status >= 500 || error.code === 'idempotency_in_progress';
  return mayBeReceived(error);
}

/**
 * Runs work that may write secrets to a new file. The file is removed if nothing was written to it. If it can't be written, for example
 * because the disk is full, the error has the text: the secrets are nowhere else. The first stop signal does not end the work, whose result would
 * be lost, but the next one does.
 */
export async function withSecretFile<Result>(
  { output }: Session,
  file: string,
  work: (keep: (text: string) => void) => Promise<Result>,
): Promise<Result> {
  const descriptor = open(file);
  let isKept = false;
  const close = (): void => {
    closeSync(descriptor);
    if (!isKept) unlinkSync(file);
  };
  const keep = (text: string): void => {
    write(descriptor, text, file);
    isKept = true;
  };
  let isHeld = false;
  const receive = (): void => {
    if (isHeld) {
      close();
      if (!isKept) output.note(LOST);
      process.exit(EXIT_CODES.fault);
    }
    isHeld = true;
    output.note(HELD);
  };
  for (const signal of STOP_SIGNALS) process.on(signal, receive);
  try {
    return await work(keep);
  } finally {
    for (const signal of STOP_SIGNALS) process.off(signal, receive);
    close();
  }
}

const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

const HELD =
  'The change is under way, and the command waits for the response, which has the secret. Another signal ends the command.';
const LOST =
  'The change may have been made, and its secret is lost then: tollgate audit shows it, and tollgate keys rotate (or tokens rotate, webhooks rotate) makes a new secret.';
const NOT_SHOWN =
  'The change was made, but its secret could not be shown and is lost: tollgate keys rotate (or tokens rotate, webhooks rotate) makes a new secret.';

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
