import { describe, expect, it } from '@jest/globals';
import { GatewayStatus, type GatewayStatusParts } from '../../../src/app/status/gateway-status.ts';
import { Readiness } from '../../../src/observability/readiness.ts';
import { systemClock } from '../../../src/platform/clock.ts';

/** What the heartbeats of a replica say, without waiting for their interval. */
class SentHeartbeats {
  readonly degraded: (readonly string[])[] = [];
  #describe = (): object => ({});

  describeWith(describe: () => object): void {
    this.#describe = describe;
    this.beat();
  }

  beat(): void {
    this.degraded.push((this.#describe() as { readonly degraded: readonly string[] }).degraded);
  }
}

function announcedBy(readiness: Readiness): SentHeartbeats['degraded'] {
  const replicas = new SentHeartbeats();
  const parts = {
    stores: { readiness, counting: { shared: { redis: { replicas }, failureMode: { isDegraded: false } } } },
    usage: { stats: { flusher: { lagMs: 0 } }, flushIntervalMs: 1000 },
    settings: { workers: 1 },
    isBackendUnreachable: () => false,
    clock: systemClock,
  };
  new GatewayStatus(parts as unknown as GatewayStatusParts).announce();
  return replicas.degraded;
}

describe('the state of a replica in its heartbeats', () => {
  it('is sent again as soon as the stores respond for the first time', async () => {
    let isUp = false;
    const check = () => (isUp ? Promise.resolve() : Promise.reject(new Error('no connection yet')));
    const readiness = new Readiness([
      { name: 'postgres', check },
      { name: 'redis', check: () => Promise.resolve() },
    ]);
    const degraded = announcedBy(readiness);
    await readiness.check();
    expect(degraded).toEqual([['postgres', 'redis']]);
    isUp = true;
    await readiness.check();
    await readiness.check();
    expect(degraded).toEqual([['postgres', 'redis'], []]);
  });
});
