import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DedicatedConnections } from '../../../src/backend/pool/dedicated-connections.ts';
import type { ReservedPlace } from '../../../src/backend/pool/places.ts';
import { collectGarbage } from '../../../src/platform/process/collect-garbage.ts';
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

  const SWITCHED = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: tunnel\r\n\r\n';

  it('keep the first bytes of a tunnel until its handler reads them', async () => {
    backend.respond(`${SWITCHED}first`);
    const job = new RecordingJob('upgrade', { isUpgrade: true });
    const switched = Promise.withResolvers<Socket>();
    job.onSwitched = (_head, socket) => switched.resolve(socket);
    reserved('a').request(job, 0);
    const socket = await switched.promise;
    await new Promise(setImmediate);
    expect(String(socket.read())).toBe('first');
  });

  it.each([
    ['were closed', 'HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n'],
    ['became tunnels that were closed', SWITCHED],
  ])('that %s are collected as garbage', async (_what, response) => {
    backend.respond(response);
    const used = async () => {
      const job = new RecordingJob('upgrade', { isUpgrade: true });
      reserved('a').request(job, 0);
      await until(() => job.connection !== undefined && connections.takenCount === 0);
      return new WeakRef(job.connection ?? job);
    };
    const connection = await used();
    await until(async () => {
      await collectGarbage();
      return connection.deref() === undefined;
    });
  });
});
