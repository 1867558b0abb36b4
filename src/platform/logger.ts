import { type Logger, pino } from 'pino';

export type { Logger };

/** From none to all. */
export type LogLevel = 'silent' | 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace';

/**
 * Logs JSON lines to standard output, with times in ISO 8601 and the process id. Callers log named fields that they choose one by one,
 * never a request, a header or a body, so that no secret can reach a line.
 */
export function createLogger(level: LogLevel): Logger {
  return pino(loggerOptions(level));
}

/** What each line of each logger has. */
export function loggerOptions(level: LogLevel): { level: LogLevel; base: object; timestamp: () => string } {
  return {
    level,
    base: { service: 'tollgate', pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
  };
}
