import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { CommandFault } from '../command-fault.ts';
import { shownCell } from '../output/table.ts';
import { audited, type Session } from './session.ts';

export interface ConfirmationOptions {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

/** Adds the options of a destructive command. */
export function destructive(command: Command): Command {
  return audited(command)
    .option('-y, --yes', 'do not ask')
    .option('--dry-run', 'say what would be done, and do nothing');
}

/** Asks whether to go on, after saying what will happen, and at which gateway. Without a terminal there is no one to ask: `--yes` is needed. */
export async function isConfirmed(
  sentence: string,
  { yes, dryRun }: ConfirmationOptions,
  { url, terminal, output }: Session,
): Promise<boolean> {
  const consequence = `${url}: ${shownCell(sentence)}`;
  if (dryRun) {
    output.note(`Dry run on ${consequence}`);
    return false;
  }
  if (yes) return true;
  // With `--token-file -` it has ended.
  if (!terminal.stdin.isTTY || terminal.stdin.readableEnded)
    throw new CommandFault(
      'usage',
      `On ${consequence} There is no terminal to ask at: repeat the command with --yes.`,
    );
  const lines = createInterface({ input: terminal.stdin, output: terminal.stderr });
  try {
    const response = await lines.question(`On ${consequence} Go on? [y/N] `).catch((error: unknown) => {
      // Ctrl-C or Ctrl-D. It leaves the cursor behind the question.
      terminal.stderr.write('\n');
      if (error instanceof Error && error.name === 'AbortError') return '';
      throw error;
    });
    if (/^y(es)?$/i.test(response.trim())) return true;
  } finally {
    lines.close();
  }
  throw new CommandFault('fault', 'Nothing was changed.');
}
