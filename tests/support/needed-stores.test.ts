import { describe, expect, it } from '@jest/globals';
import { neededStores } from './needed-stores.ts';

describe('the stores that a test run starts', () => {
  it.each([
    ['tests/architecture', { redis: false, postgres: false, embedded: false }],
    ['tests/http', { redis: false, postgres: false, embedded: false }],
    ['tests/management/wire', { redis: false, postgres: true, embedded: false }],
    ['tests/contracts/record-versions', { redis: true, postgres: false, embedded: false }],
    ['tests/gateway/metrics', { redis: true, postgres: true, embedded: false }],
    ['tests/contracts/plan-repository', { redis: false, postgres: true, embedded: true }],
    ['tests/gateway/start.test', { redis: false, postgres: true, embedded: false }],
    ['tests/cli/migrate', { redis: false, postgres: false, embedded: true }],
  ])('are those that %s uses', (path, needed) => {
    expect(neededStores([path])).toEqual(needed);
  });

  it('are all of them without a path', () => {
    expect(neededStores([])).toEqual({ redis: true, postgres: true, embedded: true });
  });
});
