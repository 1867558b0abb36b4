import { describe, expect, it } from '@jest/globals';
import { redisUrl } from '../../src/settings/redis-url.ts';

describe('REDIS_URL', () => {
  it('reads one server, with the defaults of Redis', () => {
    expect(redisUrl('redis://cache')).toEqual({
      nodes: [{ host: 'cache', port: 6379 }],
      isTls: false,
      username: undefined,
      password: undefined,
      database: 0,
      masterName: undefined,
      sentinelPassword: undefined,
    });
  });

  it('reads TLS, credentials with any characters, an IPv6 address and a database', () => {
    expect(redisUrl('rediss://app:p%40ss%2Fword@[::1]:7000/3')).toMatchObject({
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
      expect(redisUrl(text)).toMatchObject({
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
    expect(redisUrl('redis://:secret@a:26379,b:26379/orders?db=2&sentinelPassword=other')).toMatchObject({
      masterName: 'orders',
      database: 2,
      password: 'secret',
      sentinelPassword: 'other',
    });
  });

  it('reads a plus sign in either password as it is written', () => {
    expect(redisUrl('redis://:a+b%2B@a/orders?sentinelPassword=c+d%2B%20')).toMatchObject({
      password: 'a+b+',
      sentinelPassword: 'c+d+ ',
    });
  });

  it.each(['', 'cache:6379', 'http://secret@cache', 'redis://:secret@cache:port', 'redis://a:1,http://b:2'])(
    'rejects %j without quoting it',
    (text) => {
      expect(() => redisUrl(text)).toThrow(/^must /);
      expect(() => redisUrl(text)).not.toThrow(/secret/);
    },
  );
});
