import { writeSync } from 'node:fs';
import { type Logger, pino } from 'pino';

export type { Logger };

const STANDARD_OUTPUT = 1;

/** From none to all. */
export type LogLevel = 'silent' | 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace';

/**
 * Logs JSON lines to standard output, with times in ISO 8601 and the process id. Callers log named fields that they choose one by one,
 * never a request, a header or a body, so that no secret can reach a line.
 */
export function createLogger(level: LogLevel): Logger {
  return pino(loggerOptions(level), standardOutput({}));
}

/** Standard output. Lines are dropped once its reader is gone, or its terminal was closed. Other errors of writing are thrown. */
export function standardOutput(options: Parameters<typeof pino.destination>[0] & object) {
  const output = pino.destination({ ...options, dest: STANDARD_OUTPUT });
  output.prependListener('error', (error: NodeJS.ErrnoException) => {
    // pino stops writing at EPIPE only.
    if (error.code === 'EIO') error.code = 'EPIPE';
    if (error.code !== 'EPIPE') throw error;
  });
  const flushSync = output.flushSync.bind(output);
  output.flushSync = () => {
    // It tries to write again without end.
    if (isWritable()) flushSync();
  };
  return output;
}

function isWritable(): boolean {
  try {
    writeSync(STANDARD_OUTPUT, '');
    return true;
  } catch {
    return false;
  }
}

/** What each line of each logger has. */
export function loggerOptions(level: LogLevel): { level: LogLevel; base: object; timestamp: () => string } {
  return {
    level,
    base: { service: 'tollgate', pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
  };
}
