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

it('a stop ends the removal of old jobs', async () => {
  const begun = Promise.withResolvers<void>();
  const trim = async (_nowMs: number, _keptMs: number, goesOn = () => true): Promise<void> => {
    begun.resolve();
    while (goesOn()) await new Promise(setImmediate);
  };
  const task = new JobTask({
    runner: { run: async () => {}, interrupt: () => {} },
    store: { release: async () => {}, trim },
    ...{ holder: 'this', clock: new ManualClock(0), log: pino({ level: 'silent' }) },
  });
  task.start();
  await begun.promise;
  await task.stop();
});
