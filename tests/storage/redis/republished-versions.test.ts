import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { OpenRedis } from '../../../src/storage/redis/open-redis.ts';
import { versionKeyName } from '../../../src/storage/redis/redis-key-names.ts';
import { isReady, newKeyId, openReplica } from '../../support/limiter-stores.ts';
import { testRedisUrl } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

describe('changes that are published later', () => {
  let redis: OpenRedis;
  beforeAll(async () => {
    redis = openReplica(testRedisUrl());
    await until(() => isReady(redis));
  });
  afterAll(() => redis.close());

  const CASES: readonly (readonly [string | undefined, string | null, string])[] = [
    [undefined, '3.2', '3.2'],
    ['3.1', '3.2', '3.2'],
    ['9.1', '10.1', '10.1'],
    ['3.2', '3.1', '3.2'],
    ['10.1', '9.7', '10.1'],
    ['*', '3.2', '*'],
    ['**', '3.2', '**'],
    ['-', '3.2', '-'],
    [undefined, null, '-'],
    ['3.2', null, '-'],
    ['*', null, '-'],
    ['3.1 1700000000000', '3.2', '3.2 1700000000000'],
  ];

  it.each(CASES)('make of %s and %s the shared version %s', async (known, version, expected) => {
    const keyId = newKeyId();
    if (known !== undefined) await redis.usageConnection.set(versionKeyName(keyId), known, 'PX', 60_000);
    expect(await redis.versions.publishNewer([{ keyId, version }])).toEqual(new Set());
    expect(await redis.usageConnection.get(versionKeyName(keyId))).toBe(expected);
    expect(await redis.usageConnection.pttl(versionKeyName(keyId))).toBeGreaterThan(0);
  });
});
