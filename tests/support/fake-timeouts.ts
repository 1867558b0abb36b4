import { jest } from '@jest/globals';

/** From now on `setTimeout` goes by `jest.advanceTimersByTime`, until `jest.useRealTimers`. What sockets and stores need stays real. */
export function fakeTimeouts(): void {
  jest.useFakeTimers({
    doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'setInterval', 'performance', 'Date'],
  });
}
