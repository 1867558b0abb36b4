import { systemCodeOf } from '../platform/system-code.ts';
import { EXIT_CODES } from './exit-codes.ts';
import { runCommand } from './run-command.ts';
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
  // A reader that closes the pipe early, like `head`, is no fault, and hides none that the command has found.
  if (code === 'EPIPE') process.exit();
  process.stderr.write(`Standard output can not be written (${code}).\n`);
  process.exit(EXIT_CODES.fault);
});
// Without a reader of its notes the command still does its work, and has its exit code.
process.stderr.on('error', () => {});
const exitCode = await runCommand(process.argv.slice(2), terminal);
// A long-running command like `serve`, or one with its own exit codes, sets the code itself.
if (exitCode !== 0) process.exitCode = exitCode;
