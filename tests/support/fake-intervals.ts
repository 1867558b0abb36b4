import { jest } from '@jest/globals';

/** From now on `setInterval` goes by `jest.advanceTimersByTime`, until `jest.useRealTimers`. What sockets need stays real. */
export function fakeIntervals(): void {
  jest.useFakeTimers({
    doNotFake: [
      'setTimeout',
      'clearTimeout',
      'setImmediate',
      'nextTick',
      'queueMicrotask',
      'Date',
      'performance',
    ],
  });
}
