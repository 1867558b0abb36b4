import { writeSync } from 'node:fs';
import { type Logger, pino } from 'pino';

export type { Logger };

const STANDARD_OUTPUT = 1;
/** The pause before a full pipe is written to again. Milliseconds. */
const FULL_PIPE_MS = 10;
/** After this number of pauses in a row the reader counts as stalled: one second. */
const STALLED_AFTER = 100;

/** The largest atomic write to a pipe: PIPE_BUF of Linux. Other processes write their lines to the same pipe. */
export const WHOLE_BYTES = 4096;
/** The most bytes of lines that wait for a slow reader, or for space. Further lines are dropped, because a log must not stop the traffic. */
const WAITING_BYTES = 1024 * 1024;
/** The file that standard output was opened for can't grow: its disk, or a quota, is full. */
const FULL_FILE = ['ENOSPC', 'EDQUOT', 'EFBIG'];

/** From none to all. */
export type LogLevel = 'silent' | 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace';

/**
 * Logs JSON lines to standard output, with times in ISO 8601 and the process id. Callers log named fields that they choose one by one,
 * never a request, a header or a body, so that no secret can reach a line.
 */
export function createLogger(level: LogLevel): Logger {
  return loggerTo(standardOutput({}), level);
}

/** Logs lines of this level to standard output, and, once its reader goes on, a line with the number of those that were dropped. */
export function loggerTo(output: ReturnType<typeof standardOutput>, level: LogLevel): Logger {
  const log = pino(loggerOptions(level), output);
  let dropped = 0;
  output.on('drop', () => {
    dropped += 1;
  });
  output.on('drain', () => {
    if (dropped === 0) return;
    log.warn({ event: 'log_lines_dropped', lines: dropped }, 'lines of the log were dropped');
    dropped = 0;
  });
  return log;
}

/**
 * Standard output. Lines are dropped once its reader is gone, or its terminal was closed. Where its file can't grow, they wait, and are
 * written with a later one. Other errors of writing are thrown.
 */
export function standardOutput(options: Parameters<typeof pino.destination>[0] & object) {
  const output = pino.destination({
    ...options,
    dest: STANDARD_OUTPUT,
    maxLength: WAITING_BYTES,
    maxWrite: WHOLE_BYTES,
  });
  output.prependListener('error', (error: NodeJS.ErrnoException) => {
    // pino stops writing at EPIPE only.
    if (error.code === 'EIO') error.code = 'EPIPE';
    if (error.code !== 'EPIPE' && !FULL_FILE.includes(error.code ?? '')) throw error;
  });
  // pino calls it at the exit of the process. Its own tries again without end once the reader of a pipe is gone.
  output.flushSync = () => writeAll(takeBuffered(output as unknown as Buffered));
  return output;
}

/** Private members of pino's stream, of version 4 of sonic-boom: a test fails if lines are no longer found there. */
interface Buffered {
  _bufs: string[];
  /** What is being written, or could not be. */
  _writingBuf: string | Buffer;
  _writing: boolean;
  _len: number;
}

/** The texts that are not written yet, each of whole lines. */
function takeBuffered(output: Buffered): readonly Buffer[] {
  const unwritten = output._writing ? '' : output._writingBuf;
  const taken = [unwritten, ...output._bufs].map((text) => Buffer.from(text));
  output._bufs = [];
  if (!output._writing) output._writingBuf = '';
  for (const { length } of taken) output._len -= length;
  return taken;
}

/**
 * Waits for a slow reader, and gives up if it has stalled, or at any other error. This holds for a non-blocking pipe: a write to a full
 * blocking one can't be given up, so the process ends when the reader goes on or is gone.
 */
function writeAll(texts: readonly Buffer[]): void {
  const waiting = texts.filter(({ length }) => length > 0);
  let pauses = 0;
  for (let rest = waiting.shift(); rest !== undefined && pauses < STALLED_AFTER; ) {
    try {
      rest = rest.subarray(writeSync(STANDARD_OUTPUT, rest));
      if (rest.length === 0) rest = waiting.shift();
      pauses = 0;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) return;
      pauses += 1;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_MS);
    }
  }
}

/** What each line of each logger has. */
function loggerOptions(level: LogLevel): { level: LogLevel; base: object; timestamp: () => string } {
  return {
    level,
    base: { service: 'tollgate', pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
  };
}
