import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

const run = promisify(execFile);
const MODULE = join(import.meta.dirname, '../../src/platform/buffered-logger.ts');
/** Waits until its standard output has no reader, and then logs a line. */
const PROGRAM = `
  const { writeSync } = await import('node:fs');
  const { createBufferedLogger } = await import(${JSON.stringify(MODULE)});
  const hasReader = () => {
    try {
      return writeSync(1, '.') > 0;
    } catch {
      return false;
    }
  };
  while (hasReader()) await new Promise(setImmediate);
  const { lines, flush } = createBufferedLogger();
  lines.info('lost');
`;
const FLUSH = `
  await flush();
  process.stderr.write('ended');
`;
const EXIT = `
  process.once('exit', () => writeSync(2, 'ended'));
  process.exit(1);
`;
/** Logs fewer bytes than are written together, and ends. */
const LOG_AND_EXIT = `
  const { createBufferedLogger } = await import(${JSON.stringify(MODULE)});
  const { lines } = createBufferedLogger();
  for (const text of ['one', 'zwölf', 'three']) lines.info(text);
  process.exit(0);
`;

it.each([
  ['that flushes it', FLUSH],
  ['that exits', EXIT],
])('a log whose reader is gone, at the other end of a pipe, ends with a process %s', async (_how, end) => {
  const command = '"$0" --input-type=module --eval "$1" | true';
  const { stderr } = await run('/bin/sh', ['-c', command, process.execPath, PROGRAM + end]);
  expect(stderr).toBe('ended');
});

it('a process that exits writes the lines that it has buffered, each once', async () => {
  const command = '"$0" --input-type=module --eval "$1" | cat';
  const { stdout } = await run('/bin/sh', ['-c', command, process.execPath, LOG_AND_EXIT]);
  const messages = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).msg);
  expect(messages).toEqual(['one', 'zwölf', 'three']);
});
