import { afterEach, expect, it, jest } from '@jest/globals';
import { pino } from 'pino';
import type { RunResult } from '../../src/events/delivery/deliverer.ts';
import { DeliveryTask } from '../../src/events/delivery/delivery-task.ts';
import { EventStreams } from '../../src/events/stream/event-streams.ts';
import type { TimedResult } from '../../src/events/timed/timed-events.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';

afterEach(() => {
  jest.useRealTimers();
});

it('a stream that opens is noticed at once by the task that makes timed events', async () => {
  const clock = new ManualClock(0);
  let heard = false;
  const runs: boolean[] = [];
  const task = new DeliveryTask({
    deliverer: {
      run: async () => 'no webhooks',
      backlog: async () => ({ pending: 0, oldestAtMs: null, disabled: 0 }),
      trim: async () => false,
      beginStop: () => {},
      stop: async () => {},
    },
    timed: {
      run: async () => {
        runs.push(heard);
        return heard ? 'done' : 'unheard';
      },
      stop: () => {},
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

/** A task over a deliverer that does what the test sets, with timers that fire when the test says so. */
function scripted() {
  jest.useFakeTimers();
  const clock = new ManualClock(0);
  const calls = { run: 0, backlog: 0, trim: 0, stop: 0, timed: 0 };
  const script: {
    delivered: RunResult | Error;
    timed: TimedResult;
    hasMore: boolean | Error;
    whileRunning: () => void;
  } = { delivered: 'no webhooks', timed: 'unheard', hasMore: false, whileRunning: () => {} };
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line) => void lines.push(JSON.parse(line).msg) });
  const task = new DeliveryTask({
    deliverer: {
      run: async () => {
        calls.run += 1;
        script.whileRunning();
        if (script.delivered instanceof Error) throw script.delivered;
        return script.delivered;
      },
      backlog: async () => {
        calls.backlog += 1;
        return { pending: calls.backlog, oldestAtMs: null, disabled: 0 };
      },
      trim: async () => {
        calls.trim += 1;
        if (script.hasMore instanceof Error) throw script.hasMore;
        return script.hasMore;
      },
      beginStop: () => {},
      stop: async () => {
        calls.stop += 1;
      },
    },
    timed: {
      run: async () => {
        calls.timed += 1;
        return script.timed;
      },
      stop: () => {},
    },
    log,
    monotonicMs: () => clock.monotonicMs(),
  });
  const pass = async (ms: number) => {
    clock.advance(ms);
    await jest.advanceTimersByTimeAsync(ms);
  };
  return { task, clock, calls, script, lines, pass };
}

it.each([
  ['once a minute while nothing is heard', 'no webhooks', 'unheard', 60_000],
  ['every 20 seconds while only streams hear', 'no webhooks', 'done', 20_000],
  ['every second while there are webhooks', 'delivering', 'unheard', 1000],
  ['every 5 seconds while another replica delivers', 'another replica delivers', 'unheard', 5000],
  ['every 5 seconds while the store is away', new Error('away'), 'unheard', 5000],
] as const)('the task of deliveries runs %s', async (_when, delivered, timed, pauseMs) => {
  const { task, calls, script, pass } = scripted();
  Object.assign(script, { delivered, timed });
  task.start();
  await pass(0);
  expect(calls.run).toBe(1);
  await pass(pauseMs - 1);
  expect(calls.run).toBe(1);
  await pass(1);
  expect(calls.run).toBe(2);
  await task.stop();
  await pass(pauseMs);
  expect([calls.run, calls.stop]).toEqual([2, 1]);
});

it.each([
  ['events', { delivered: 'behind', timed: 'unheard' }],
  ['timed events', { delivered: 'no webhooks', timed: 'more' }],
] as const)('the task of deliveries makes no pause while there are more %s', async (_what, results) => {
  const { task, calls, script, pass } = scripted();
  Object.assign(script, results);
  task.start();
  for (let ticks = 0; ticks < 10; ticks += 1) await pass(1);
  expect(calls.run).toBeGreaterThan(5);
  await task.stop();
});

it('the task of deliveries makes timed events every 20 seconds, counts every 30, and trims every hour', async () => {
  const { task, clock, calls, script, pass } = scripted();
  script.delivered = 'delivering';
  task.start();
  await pass(0);
  expect([calls.timed, calls.backlog, calls.trim]).toEqual([1, 1, 1]);
  const seen: number[][] = [];
  for (let second = 1; second <= 60; second += 1) {
    await pass(1000);
    if ([19, 20, 29, 30, 59, 60].includes(second)) seen.push([calls.timed, calls.backlog]);
  }
  expect(seen).toEqual([
    [1, 1],
    [2, 1],
    [2, 1],
    [2, 2],
    [3, 2],
    [4, 3],
  ]);
  // The clock alone: in an hour of timers each of the process would fire, also one that an earlier file has left, thousands of times.
  clock.advance(3_600_000 - 62_000);
  await pass(1000);
  expect(calls.trim).toBe(1);
  await pass(1000);
  expect(calls.trim).toBe(2);
  await task.stop();
});

it('the task of deliveries goes on trimming in its next runs until nothing is left', async () => {
  const { task, calls, script, pass } = scripted();
  script.hasMore = true;
  task.start();
  await pass(0);
  await pass(1000);
  script.hasMore = false;
  await pass(1000);
  script.delivered = 'delivering';
  await pass(60_000);
  expect(calls.trim).toBe(3);
  await task.stop();
});

it('the task of deliveries logs once that trimming fails, and tries it an hour later', async () => {
  const { task, clock, calls, script, lines, pass } = scripted();
  script.delivered = 'delivering';
  script.hasMore = new Error('a fault');
  task.start();
  await pass(0);
  await pass(1000);
  expect([calls.run, calls.trim]).toEqual([2, 1]);
  expect(lines).toEqual(['old events and deliveries could not all be removed; it is tried again in an hour']);
  clock.advance(3_600_000);
  await pass(1000);
  expect(calls.trim).toBe(2);
  await task.stop();
});

it('the task of deliveries knows no backlog while another replica delivers, and counts at once when it does', async () => {
  const { task, script, pass } = scripted();
  script.delivered = 'delivering';
  task.start();
  await pass(0);
  expect(task.backlog).toMatchObject({ pending: 1 });
  script.delivered = 'another replica delivers';
  await pass(1000);
  expect(task.backlog).toBeUndefined();
  script.delivered = 'delivering';
  await pass(5000);
  expect(task.backlog).toMatchObject({ pending: 2 });
  await task.stop();
});

it('the task of deliveries logs each outage once', async () => {
  const { task, script, lines, pass } = scripted();
  script.delivered = new Error('away');
  task.start();
  await pass(0);
  await pass(5000);
  expect(lines).toEqual(['events could not be delivered; it is tried again']);
  script.delivered = 'delivering';
  await pass(5000);
  script.delivered = new Error('away');
  await pass(1000);
  await pass(5000);
  expect(lines).toHaveLength(2);
  await task.stop();
});

it('a task of deliveries that is stopped while it delivers makes no timed events, and does not trim', async () => {
  const { task, calls, script, pass } = scripted();
  let stopped: Promise<void> | undefined;
  script.delivered = 'delivering';
  script.whileRunning = () => {
    stopped = task.stop();
  };
  task.start();
  await pass(0);
  await stopped;
  expect(calls).toMatchObject({ run: 1, timed: 0, trim: 0, stop: 1 });
});

it('a task of deliveries that was never started has nothing to stop', async () => {
  const { task, calls } = scripted();
  await task.stop();
  expect(calls.stop).toBe(0);
});
