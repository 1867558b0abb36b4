import { type Logger, pino } from 'pino';

export type { Logger };

/** From silent to everything. */
export type LogLevel = 'silent' | 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace';

/**
 * JSON lines on standard output, times in ISO 8601, with the process that wrote them. Callers log named fields that they chose one by one, never a request,
 * a header or a body, so that no secret can reach a line.
 */
export function createLogger(level: LogLevel): Logger {
  return pino({
    level,
    base: { service: 'tollgate', pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
  });
}
