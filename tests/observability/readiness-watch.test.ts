import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { pino } from 'pino';
import { Readiness, ReadinessFault } from '../../src/observability/readiness.ts';
import { ReadinessWatch } from '../../src/observability/readiness-watch.ts';
import { systemClock } from '../../src/platform/clock.ts';

let lines: string[];
/** Undefined = fit. */
let fault: string | undefined;
let watch: ReadinessWatch;

beforeEach(() => {
  jest.useFakeTimers();
  lines = [];
  fault = 'not there yet';
  const store = {
    name: 'store',
    check: async () => {
      if (fault !== undefined) throw new ReadinessFault(fault);
    },
  };
  const write = (line: string): void => {
    const { msg, reason, seconds } = JSON.parse(line) as { msg: string; reason?: string; seconds?: number };
    const fact = reason ?? (seconds === undefined ? undefined : `${seconds} s`);
    lines.push(fact === undefined ? msg : `${msg}: ${fact}`);
  };
  const log = pino({}, { write });
  watch = new ReadinessWatch(new Readiness([store]), { log, clock: systemClock });
  watch.start();
});
afterEach(() => {
  watch.stop();
  jest.useRealTimers();
});

describe('the watch over readiness', () => {
  it('logs nothing of a component that is up at once, and logs when all are', async () => {
    await jest.advanceTimersByTimeAsync(300);
    fault = undefined;
    await jest.advanceTimersByTimeAsync(50);
    expect(lines).toEqual(['ready']);
  });

  it('tells once what a start waits for, and again when that changes', async () => {
    await jest.advanceTimersByTimeAsync(900);
    expect(lines).toEqual([]);
    await jest.advanceTimersByTimeAsync(5000);
    expect(lines).toEqual(['a component is unhealthy: not there yet']);
    fault = 'too old';
    await jest.advanceTimersByTimeAsync(500);
    expect(lines.at(-1)).toBe('a component is unhealthy: too old');
    fault = undefined;
    await jest.advanceTimersByTimeAsync(500);
    expect(lines.slice(2)).toEqual(['a component is healthy again: 6 s', 'ready']);
  });

  it('tells at its next look of a component that goes down later', async () => {
    fault = undefined;
    await jest.advanceTimersByTimeAsync(50);
    fault = 'gone';
    await jest.advanceTimersByTimeAsync(5000);
    expect(lines).toEqual(['ready', 'a component is unhealthy: gone']);
  });

  it('tells how long a component was down, whatever reasons it had meanwhile', async () => {
    fault = undefined;
    await jest.advanceTimersByTimeAsync(50);
    for (const reason of ['gone', 'starting', undefined]) {
      fault = reason;
      await jest.advanceTimersByTimeAsync(10_000);
    }
    expect(lines.slice(1)).toEqual([
      'a component is unhealthy: gone',
      'a component is unhealthy: starting',
      'a component is healthy again: 20 s',
    ]);
  });
});
