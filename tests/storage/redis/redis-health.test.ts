import { describe, expect, it } from '@jest/globals';
import { readHealth } from '../../../src/storage/redis/redis-health.ts';

describe('readHealth', () => {
  it.each([
    ['6.2.14', 1],
    ['', 1],
    ['7.0.0', 0],
    ['8.2.1', 0],
    ['10.0.0', 0],
  ])('rejects servers older than 7: %j', (version, faults) => {
    const health = readHealth(`# Server\r\nredis_version:${version}\r\nmaxmemory_policy:noeviction\r\n`);
    expect(health.version).toBe(version);
    expect(health.faults).toHaveLength(faults);
  });
});
