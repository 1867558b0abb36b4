import { type Logger, loggerTo, standardOutput, WHOLE_BYTES } from './logger.ts';

/** A logger for many lines, which are written in batches. */
export interface BufferedLogger {
  readonly lines: Logger;
  /** Resolves when the buffered lines are written, or can't be. Never rejects. */
  flush(): Promise<void>;
}

/** The longest that a line is buffered. Milliseconds. */
const WAIT_MS = 200;

/**
 * Logs the same kind of lines, also to standard output, for events that occur once per request. A process that is killed loses the lines of
 * the last 200 ms. If the reader stalls, lines are dropped instead of stalling the gateway.
 */
export function createBufferedLogger(): BufferedLogger {
  const destination = standardOutput({
    sync: false,
    minLength: WHOLE_BYTES - 1,
    periodicFlush: WAIT_MS,
  });
  return {
    lines: loggerTo(destination, 'info'),
    // Not with its `flushSync`, which does not wait for a write that is under way.
    flush: () => new Promise((resolve) => destination.flush(() => resolve())),
  };
}
