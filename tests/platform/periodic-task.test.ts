import { describe, expect, it } from '@jest/globals';
import { PeriodicTask } from '../../src/platform/periodic-task.ts';
import { systemRandom } from '../../src/platform/random.ts';

describe('a periodic task', () => {
  it('lets its work know that it is to end, and stops once that has ended', async () => {
    const parts: boolean[] = [];
    const begun = Promise.withResolvers<void>();
    const task = new PeriodicTask(
      async (goesOn) => {
        while (goesOn()) {
          parts.push(true);
          begun.resolve();
          await new Promise(setImmediate);
        }
        parts.push(false);
        return true;
      },
      { random: systemRandom, pauseMs: 3_600_000 },
    );
    task.startAtOnce();
    await begun.promise;
    await task.stop();
    expect(parts.at(-1)).toBe(false);
  });
});
