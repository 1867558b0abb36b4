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
  await flush();
  process.stderr.write('ended');
`;

it('a log whose reader is gone, at the other end of a pipe, keeps no process from its end', async () => {
  const command = '"$0" --input-type=module --eval "$1" | true';
  const { stderr } = await run('/bin/sh', ['-c', command, process.execPath, PROGRAM]);
  expect(stderr).toBe('ended');
});
