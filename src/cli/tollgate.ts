import { CommanderError } from 'commander';
import { EXIT_CODES, systemCodeOf } from './command-fault.ts';
import { explainFault } from './explain-fault.ts';
import { createProgram } from './program.ts';
import type { Terminal } from './terminal.ts';

/** The `tollgate` command, as `bin/tollgate.js` starts it. */
const terminal: Terminal = {
  environment: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
};
process.stdout.on('error', (error) => {
  const code = systemCodeOf(error);
  // A reader that closes the pipe early, like `head`, is not a fault.
  if (code === 'EPIPE') process.exit(0);
  process.stderr.write(`Standard output can not be written (${code}).\n`);
  process.exit(EXIT_CODES.fault);
});
// Without a reader of its notes the command still does its work, and has its exit code.
process.stderr.on('error', () => {});
const exitCode = await run(process.argv.slice(2));
// A long-running command like `serve`, or one with its own exit codes, sets the code itself.
if (exitCode !== 0) process.exitCode = exitCode;

async function run(given: readonly string[]): Promise<number> {
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
    const { exitCode: code, message } = explainFault(error);
    terminal.stderr.write(`${message}\n`);
    return code;
  }
}
