import { type Logger, pino } from 'pino';

export type { Logger };

/** From silent to everything. */
export type LogLevel = 'silent' | 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace';

/**
 * JSON lines on standard output, times in ISO 8601, with the process that wrote them. Callers log named fields that they chose one by one, never a request,
 * a header or a body, so that no secret can reach a line.
 */
export function createLogger(level: LogLevel): Logger {
  return pino(optionsOf(level));
}

/** A logger for very many lines, which are written in batches. `flush` writes those that wait. */
export interface BulkLogger {
  readonly lines: Logger;
  /** Writes what is left. */
  flush(): void;
}

/** Largest write to a pipe that is atomic: PIPE_BUF of Linux. */
const WHOLE_BYTES = 4096;
/** Longest that a line waits for others. Milliseconds. */
const WAIT_MS = 200;
/** Most bytes of lines buffered while their reader is slow; further lines are dropped, because a log must not stop the traffic. */
const WAITING_BYTES = 1024 * 1024;

/**
 * The same lines, also on standard output, for what is logged once per request: a process that is killed loses those of the last 200 ms,
 * and a reader that stalls loses lines instead of stalling the gateway.
 */
export function createBulkLogger(): BulkLogger {
  const destination = pino.destination({
    dest: 1,
    sync: false,
    minLength: WHOLE_BYTES - 1,
    maxWrite: WHOLE_BYTES,
    maxLength: WAITING_BYTES,
    periodicFlush: WAIT_MS,
  });
  return { lines: pino(optionsOf('info'), destination), flush: () => destination.flushSync() };
}

function optionsOf(level: LogLevel): { level: LogLevel; base: object; timestamp: () => string } {
  return {
    level,
    base: { service: 'tollgate', pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
  };
}
