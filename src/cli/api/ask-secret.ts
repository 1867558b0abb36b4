import { text } from 'node:stream/consumers';
import { CommandFault } from '../command-fault.ts';
import type { Terminal } from '../terminal.ts';

const CTRL_C = '\u0003';
const END_OF_LINE = ['\r', '\n', '\u0004'];
const BACKSPACES = ['\u007f', '\b'];

/** Reads a secret: a line that the terminal does not show, or all of standard input if it is not a terminal. Never empty. */
export async function askSecret(question: string, { stdin, stderr }: Terminal): Promise<string> {
  // With `--token-file -` it has ended.
  const mayAsk = stdin.isTTY && !stdin.readableEnded;
  const secret = (mayAsk ? await hiddenLine(question, stdin, stderr) : await text(stdin)).trim();
  if (secret === '') throw new CommandFault('usage', 'There was no secret on standard input.');
  return secret;
}

/** Reads a line without showing it on the screen. Rejects after Ctrl-C. */
function hiddenLine(question: string, stdin: NodeJS.ReadStream, stderr: NodeJS.WriteStream): Promise<string> {
  stderr.write(question);
  stdin.setRawMode(true).setEncoding('utf8').resume();
  return new Promise<string>((resolve, reject) => {
    let line = '';
    const read = (chunk: string): void => {
      for (const character of chunk) {
        if (END_OF_LINE.includes(character) || character === CTRL_C) {
          stdin.off('data', read).setRawMode(false).pause();
          stderr.write('\n');
          if (character === CTRL_C) reject(new CommandFault('fault', 'Nothing was changed.'));
          else resolve(line);
          return;
        }
        line = BACKSPACES.includes(character) ? line.slice(0, -1) : line + character;
      }
    };
    stdin.on('data', read);
  });
}
