import { expect, it, jest } from '@jest/globals';
import { pino } from 'pino';
import { JobTask } from '../../src/jobs/job-task.ts';
import { ManualClock } from '../support/manual-clock.ts';

it.each([
  [900, 1],
  [901, 0],
])(
  'a stop that took %d ms asks the store %d times to release the jobs: it may hang',
  async (tookMs, times) => {
    const clock = new ManualClock(0);
    const run = Promise.withResolvers<void>();
    const release = jest.fn(async () => {});
    const task = new JobTask({
      runner: { run: () => run.promise, interrupt: () => {} },
      store: { release, trim: async () => {} },
      ...{ holder: 'this', clock, log: pino({ level: 'silent' }) },
    });
    task.start();
    const stopped = task.stop();
    clock.advance(tookMs);
    run.resolve();
    await stopped;
    expect(release).toHaveBeenCalledTimes(times);
  },
);
