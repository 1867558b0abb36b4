import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { LabelledValue, Reading } from './reading.ts';

const NANOSECONDS = 1e9;

/** The delay since the last scrape, so that a stall shows in one scrape only. */
export function eventLoopDelay(): Reading {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  return {
    name: 'tollgate_event_loop_delay_seconds',
    help: 'Seconds by which the event loop of a process was late since the last scrape: median, 99th percentile and maximum.',
    type: 'gauge',
    ofWorkers: 'max',
    read: () => {
      const values: readonly LabelledValue[] = [
        [{ statistic: 'p50' }, delay.percentile(50) / NANOSECONDS],
        [{ statistic: 'p99' }, delay.percentile(99) / NANOSECONDS],
        [{ statistic: 'max' }, delay.max / NANOSECONDS],
      ];
      delay.reset();
      return values;
    },
  };
}
