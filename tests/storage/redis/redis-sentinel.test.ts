import { afterEach, describe, expect, it } from '@jest/globals';
import { decide, isReady, newKeyId, openReplica, subject } from '../../support/limiter-stores.ts';
import { startSentinel } from '../../support/redis-sentinel.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { until } from '../../support/until.ts';

const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

describe('a replica in sentinel mode', () => {
  it('finds the master by the name that the sentinels know', async () => {
    const server = await startRedisServer();
    stops.push(() => server.stop());
    const { port, stop } = await startSentinel('orders', server.port);
    stops.push(stop);
    const replica = openReplica(`redis://127.0.0.1:${port},127.0.0.1:${port}/orders`, 'sentinel');
    stops.push(() => replica.close());
    await until(() => isReady(replica));
    expect(await decide(replica.limiter, subject(newKeyId()))).toMatchObject({ kind: 'allowed' });
  });
});
