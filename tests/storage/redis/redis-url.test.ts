import { describe, expect, it } from '@jest/globals';
import { readHealth } from '../../../src/storage/redis/redis-health.ts';
import { parseRedisUrl } from '../../../src/storage/redis/redis-url.ts';

describe('parseRedisUrl', () => {
  it('reads one server, with the defaults of Redis', () => {
    expect(parseRedisUrl('redis://cache')).toEqual({
      nodes: [{ host: 'cache', port: 6379 }],
      isTls: false,
      username: undefined,
      password: undefined,
      database: 0,
      masterName: 'mymaster',
      sentinelPassword: undefined,
    });
  });

  it('reads TLS, credentials with any characters, an IPv6 address and a database', () => {
    expect(parseRedisUrl('rediss://app:p%40ss%2Fword@[::1]:7000/3')).toMatchObject({
      nodes: [{ host: '::1', port: 7000 }],
      isTls: true,
      username: 'app',
      password: 'p@ss/word',
      database: 3,
    });
  });

  it.each(['rediss://:secret@a:1,b:2,c:3', 'rediss://:secret@a:1, rediss://b:2, rediss://c:3'])(
    'reads several nodes, the first of which speaks for all: %s',
    (text) => {
      expect(parseRedisUrl(text)).toMatchObject({
        nodes: [
          { host: 'a', port: 1 },
          { host: 'b', port: 2 },
          { host: 'c', port: 3 },
        ],
        isTls: true,
        password: 'secret',
      });
    },
  );

  it('reads the name of the master that sentinels watch', () => {
    expect(parseRedisUrl('redis://:secret@a:26379,b:26379/orders?db=2&sentinelPassword=other')).toMatchObject(
      {
        masterName: 'orders',
        database: 2,
        password: 'secret',
        sentinelPassword: 'other',
      },
    );
  });

  it.each(['', 'cache:6379', 'http://secret@cache', 'redis://:secret@cache:port', 'redis://a:1,http://b:2'])(
    'refuses %j without quoting it',
    (text) => {
      expect(() => parseRedisUrl(text)).toThrow(TypeError);
      expect(() => parseRedisUrl(text)).not.toThrow(/secret/);
    },
  );
});

describe('readHealth', () => {
  it.each([
    ['6.2.14', 1],
    ['', 1],
    ['7.0.0', 0],
    ['8.2.1', 0],
    ['10.0.0', 0],
  ])('refuses servers older than 7: %j', (version, faults) => {
    const health = readHealth(`# Server\r\nredis_version:${version}\r\nmaxmemory_policy:noeviction\r\n`);
    expect(health.version).toBe(version);
    expect(health.faults).toHaveLength(faults);
  });
});
