import { expect, it } from '@jest/globals';
import { pino } from 'pino';
import { DeliveryTask } from '../../src/events/delivery/delivery-task.ts';
import { EventStreams } from '../../src/events/stream/event-streams.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';

it('a stream that opens is noticed at once by the task that makes timed events', async () => {
  const clock = new ManualClock(0);
  let heard = false;
  const runs: boolean[] = [];
  const task = new DeliveryTask({
    deliverer: {
      run: async () => 'no webhooks',
      backlog: async () => ({ pending: 0, oldestAtMs: null, disabled: 0 }),
      trim: async () => {},
      stop: async () => {},
    },
    timed: {
      run: async () => {
        runs.push(heard);
        return heard ? 'done' : 'unheard';
      },
    },
    log: pino({ level: 'silent' }),
    monotonicMs: () => clock.monotonicMs(),
  });
  task.start();
  await until(async () => runs.length === 1);
  const streams = new EventStreams({
    reader: {
      follow: async () => {
        heard = true;
        return { lastEvent: 0, isNoted: true };
      },
      after: async (position) => ({ events: [], position, isEnd: true }),
    },
    ...{ source: '/test', clock, wake: () => task.wake() },
  });
  await streams.open({
    ...{
      client: 'a client',
      events: [],
      onlyTags: [],
      subject: undefined,
      afterSequence: undefined,
      isAllowed: async () => true,
    },
  });
  await until(async () => runs.length === 2);
  expect(runs).toEqual([false, true]);
  streams.stop();
  await task.stop();
});
