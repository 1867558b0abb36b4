import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

const run = promisify(execFile);
const MODULE = join(import.meta.dirname, '../../src/platform/buffered-logger.ts');
const LOGGER = join(import.meta.dirname, '../../src/platform/logger.ts');
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
/** Fills the file of its standard output, logs a line, empties the file, and logs another one. */
const FILL_AND_GO_ON = `
  const { appendFileSync, truncateSync } = await import('node:fs');
  const [path, name] = process.argv.slice(1);
  const loggers = {
    createLogger: async () => (await import(${JSON.stringify(LOGGER)})).createLogger('info'),
    createBufferedLogger: async () => (await import(${JSON.stringify(MODULE)})).createBufferedLogger().lines,
  };
  const log = await loggers[name]();
  const written = async () => {
    do await new Promise(setImmediate);
    while (process.getActiveResourcesInfo().includes('FSReqCallback'));
  };
  try {
    while (true) appendFileSync(path, 'x'.repeat(512));
  } catch (error) {
    if (error.code !== 'EFBIG') throw error;
  }
  // Longer than what a buffered logger keeps.
  log.info('waited'.padEnd(5000));
  await written();
  truncateSync(path);
  log.info('later');
  await written();
  process.exit(0);
`;
/** Logs much more than a pipe holds, in lines of which one fits into an atomic write. */
const LOG_LONG_LINES = `
  const { createLogger } = await import(${JSON.stringify(LOGGER)});
  const log = createLogger('info');
  for (let line = 0; line < 300; line++) log.info('x'.repeat(3000 + line));
`;
/** Logs more than waits for a reader, says so, and goes on as long as there is a reader, who then ends it. */
const OVERFLOW_AND_WAIT = `
  const { createBufferedLogger } = await import(${JSON.stringify(MODULE)});
  const { lines } = createBufferedLogger();
  for (let line = 0; line < 2000; line++) lines.info('x'.repeat(1000));
  process.stderr.write('overflowed');
  process.stdin.resume();
`;
/** Logs more than fits into a pipe, and ends. Node makes a pipe of standard output non-blocking when it is first used. */
const OVERFLOW_AND_EXIT = `
  process.stdout.writable;
  const { createBufferedLogger } = await import(${JSON.stringify(MODULE)});
  const { lines } = createBufferedLogger();
  for (let line = 0; line < 900; line++) lines.info('x'.repeat(1000));
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

it.each([
  ['goes on', ''],
  ['exits', 'process.exit(0);'],
])('a process that %s tears no line of another one in the same pipe', async (_what, end) => {
  // The reader makes room for a few bytes at a time.
  const command =
    '{ "$0" --input-type=module --eval "$1" & "$0" --input-type=module --eval "$1" & wait; } | dd bs=8 status=none';
  const argv = ['-c', command, process.execPath, LOG_LONG_LINES + end];
  const { stdout } = await run('/bin/sh', argv, { maxBuffer: 2 ** 22 });
  const lines = stdout.trimEnd().split('\n');
  const lengths = lines.map((line) => JSON.parse(line).msg.length);
  const logged = Array.from({ length: 600 }, (_, index) => 3000 + Math.floor(index / 2));
  expect(lengths.toSorted((a, b) => a - b)).toEqual(logged);
});

it('a log says how many lines were dropped, once its reader goes on', async () => {
  const argv = ['--input-type=module', '--eval', OVERFLOW_AND_WAIT];
  const writer = spawn(process.execPath, argv, { stdio: 'pipe' });
  await once(writer.stderr, 'data');
  const messages: string[] = [];
  for await (const line of createInterface(writer.stdout)) {
    const { msg, event, lines } = JSON.parse(line);
    if (event === undefined) messages.push(msg);
    else {
      expect({ event, dropped: lines }).toEqual({
        event: 'log_lines_dropped',
        dropped: 2000 - messages.length,
      });
      writer.stdin.end();
    }
  }
  expect(messages.length).toBeLessThan(2000);
});

it('a process that exits ends although the reader of its log has stalled', async () => {
  const argv = ['--input-type=module', '--eval', OVERFLOW_AND_EXIT];
  // Its standard output is not read.
  const writer = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [code] = await once(writer, 'exit');
  writer.stdout.destroy();
  expect(code).toBe(0);
});

it.each(['createLogger', 'createBufferedLogger'])(
  'a process goes on where the file of its log is full, and writes the lines once there is space: %s',
  async (logger) => {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-log-'));
    try {
      const path = join(directory, 'log');
      const command = 'ulimit -f 16; exec "$0" --input-type=module --eval "$1" "$2" "$3" >> "$2"';
      await run('/bin/sh', ['-c', command, process.execPath, FILL_AND_GO_ON, path, logger]);
      const lines = (await readFile(path, 'utf8')).trimEnd().split('\n');
      expect(lines.map((line) => JSON.parse(line).msg.trimEnd())).toEqual(['waited', 'later']);
    } finally {
      await rm(directory, { recursive: true });
    }
  },
);
