import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';

/** What tests import from `@jest/globals` where Node runs them as they are. */
export { expect } from 'expect';

type Definitions = Pick<
  typeof import('jest-circus'),
  'afterAll' | 'afterEach' | 'beforeAll' | 'beforeEach' | 'describe' | 'it' | 'test'
>;

// The functions that define tests. Each test file has its own, and these bindings are those of the file that runs: a module that several files
// import is loaded once.
export let afterAll: Definitions['afterAll'];
export let afterEach: Definitions['afterEach'];
export let beforeAll: Definitions['beforeAll'];
export let beforeEach: Definitions['beforeEach'];
export let describe: Definitions['describe'];
export let it: Definitions['it'];
export let test: Definitions['test'];

/** From now on tests are defined by these. */
export function defineTestsBy(definitions: Definitions): void {
  ({ afterAll, afterEach, beforeAll, beforeEach, describe, it, test } = definitions);
}

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
  advanceTimersByTime: (ms: number) => timers.advanceTimersByTime(ms),
  getTimerCount: () => timers.getTimerCount(),
  advanceTimersByTimeAsync: (ms: number) => timers.advanceTimersByTimeAsync(ms),
};
