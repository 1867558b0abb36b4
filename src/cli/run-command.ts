import { CommanderError } from 'commander';
import { EXIT_CODES } from './exit-codes.ts';
import { explainFault } from './explain-fault.ts';
import { escapeControls } from './output/table.ts';
import { createProgram } from './program.ts';
import type { Terminal } from './terminal.ts';

/** Runs what was given after `tollgate`, and resolves with the exit code. Never rejects: faults are explained on standard error. */
export async function runCommand(given: readonly string[], terminal: Terminal): Promise<number> {
  // `help keys rotate` is `keys rotate --help`.
  const words = given[0] === 'help' ? [...given.slice(1), '--help'] : given;
  try {
    if (words[0] === 'complete') {
      const { completeWords } = await import('./complete-words.ts');
      // The shells' completion scripts call `tollgate complete -- <words>`.
      await completeWords(words.slice(2), terminal);
      return 0;
    }
    const program = await createProgram(terminal, words[0]);
    await program.parseAsync([...words], { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_CODES.usage;
    const { exitCode, message } = explainFault(error);
    // A part of it may be from a server that is no gateway.
    terminal.stderr.write(`${message.split('\n').map(escapeControls).join('\n')}\n`);
    return exitCode;
  }
}
