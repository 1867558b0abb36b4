import { readFileSync } from 'node:fs';
import { Writable } from 'node:stream';
import type { Command } from 'commander';
import { createProgram } from '../../src/cli/program.ts';
import type { Terminal } from '../../src/cli/terminal.ts';

export const CLI_GUIDE = new URL('../../docs/cli.md', import.meta.url);
const START = '<!-- commands -->\n';

/** The guide as it is, with the help of each command below its mark. */
export async function cliGuideWithCommands(): Promise<string> {
  const [introduction = ''] = readFileSync(CLI_GUIDE, 'utf8').split(START);
  const program = await wholeProgram();
  const sections = leaves(program).map(
    ({ path, command }) => `### ${path}\n\n\`\`\`\n${helpOf(command)}\n\`\`\`\n`,
  );
  return `${introduction}${START}\n${sections.join('\n')}`;
}

/** The program with all of its commands, which writes nothing. */
export async function wholeProgram(): Promise<Command> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = {
    environment: {},
    stdin: process.stdin,
    stdout: Object.assign(nowhere, { columns: 110 }),
    stderr: nowhere,
  } as unknown as Terminal;
  return createProgram(terminal, 'all');
}

/** Commands that do something, in the order of the help. */
function leaves(
  command: Command,
  path = command.name(),
): readonly { readonly path: string; readonly command: Command }[] {
  const below = command.commands
    .filter((each) => each.name() !== 'help')
    .flatMap((each) => leaves(each, `${path} ${each.name()}`));
  const hasWords = command.registeredArguments.length > 0 || command.options.length > 0;
  // The program has only the options of all commands.
  const isRun = command.commands.length === 0 || (hasWords && command.parent !== null);
  return isRun ? [{ path, command }, ...below] : below;
}

function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
    getOutHelpWidth: () => 110,
    getOutHasColors: () => false,
  });
  command.outputHelp();
  return text.replaceAll(/[ \t]+$/gm, '').trimEnd();
}
