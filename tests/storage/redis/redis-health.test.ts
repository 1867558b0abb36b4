import { describe, expect, it } from '@jest/globals';
import { serverFaults } from '../../../src/storage/redis/redis-health.ts';

describe('the faults of a Redis server', () => {
  it.each([
    ['6.2.14', 1],
    ['', 1],
    ['7.0.0', 0],
    ['8.2.1', 0],
    ['10.0.0', 0],
  ])('are none from version 7 on: %j', (version, faults) => {
    expect(serverFaults({ version, evictionPolicy: 'noeviction' })).toHaveLength(faults);
  });
});
