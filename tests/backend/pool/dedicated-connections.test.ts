import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DedicatedConnections } from '../../../src/backend/pool/dedicated-connections.ts';
import type { ReservedPlace } from '../../../src/backend/pool/places.ts';
import { RawBackend } from '../../proxy/support/raw-backend.ts';
import { until } from '../../support/until.ts';
import { RecordingJob } from '../support/recording-job.ts';

describe('connections for upgrades', () => {
  let backend: RawBackend;
  let connections: DedicatedConnections;
  beforeEach(async () => {
    backend = await RawBackend.start();
    connections = new DedicatedConnections({
      url: new URL(backend.url),
      connectTimeoutMs: 5000,
      bodyIdleMs: 5000,
      connections: 3,
      connectionsPerKey: 2,
    });
  });
  afterEach(async () => {
    connections.destroy();
    await backend.stop();
  });

  /** Throws where there is no place. */
  function reserved(key: string): ReservedPlace {
    const place = connections.reserve(key);
    if (typeof place === 'string') throw new Error(place);
    return place;
  }

  it('are bounded for one key, while others have theirs, and in all', () => {
    const [first] = [reserved('a'), reserved('a')];
    expect(connections.reserve('a')).toBe('key_full');
    first.cancel();
    reserved('a');
    expect(connections.reserve('a')).toBe('key_full');
    reserved('b');
    expect(connections.takenCount).toBe(3);
    expect(connections.reserve('c')).toBe('full');
  });

  it('free the place of their key when they close, and are never reused', async () => {
    backend.respond('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
    for (let index = 0; index < 4; index += 1) {
      const job = new RecordingJob('upgrade');
      reserved('a').request(job, 0);
      await job.heard('onComplete');
      expect(job.connection?.state).toBe('closed');
    }
    await until(() => connections.takenCount === 0);
    expect(backend.connections).toHaveLength(4);
  });
});
