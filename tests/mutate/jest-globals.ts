import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';

/** What tests import from `@jest/globals`, for `run-tests.ts`. */
export { expect } from 'expect';
export { afterAll, afterEach, beforeAll, beforeEach, describe, it, test } from 'jest-circus';

const mocker = new ModuleMocker(globalThis);
const timers = new ModernFakeTimers({
  // It reads only this of the configuration.
  config: { rootDir: process.cwd(), fakeTimers: {} } as ConstructorParameters<
    typeof ModernFakeTimers
  >[0]['config'],
  global: globalThis,
});

export const jest = {
  fn: mocker.fn.bind(mocker),
  spyOn: mocker.spyOn.bind(mocker),
  restoreAllMocks: () => mocker.restoreAllMocks(),
  useFakeTimers: (config?: Parameters<typeof timers.useFakeTimers>[0]) => timers.useFakeTimers(config),
  useRealTimers: () => timers.useRealTimers(),
  advanceTimersByTimeAsync: (ms: number) => timers.advanceTimersByTimeAsync(ms),
};
