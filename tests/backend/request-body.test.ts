import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { BackendConnection } from '../../src/backend/connection.ts';
import { BackendPool } from '../../src/backend/pool/pool.ts';
import { RequestBody } from '../../src/backend/request-body.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { RawBackend } from '../proxy/support/raw-backend.ts';
import { until } from '../support/until.ts';
import { RecordingJob } from './support/recording-job.ts';

/** A body whose sender may leave before its end. */
class Source extends Readable {
  complete = true;

  override _read(): void {}
}

/** Sends a body that it is given. */
class Upload extends RecordingJob {
  readonly #framing: 'chunked' | number;
  readonly source = new Source();
  sent: RequestBody | undefined;

  constructor(framing: 'chunked' | number) {
    super('upload');
    this.#framing = framing;
  }

  override begin(connection: BackendConnection): void {
    this.connection = connection;
    this.sent = new RequestBody(this.source, this.#framing, systemClock);
    const head = 'POST / HTTP/1.1\r\nhost: backend\r\n\r\n';
    connection.send({ method: 'POST', head, body: this.sent, isUpgrade: false }, this);
  }
}

describe('the body of a request', () => {
  let backend: RawBackend;
  let pool: BackendPool;
  beforeEach(async () => {
    backend = await RawBackend.start();
    pool = new BackendPool({
      url: new URL(backend.url),
      connectTimeoutMs: 5000,
      bodyIdleMs: 5000,
      clock: systemClock,
      connections: 1,
      connectionsPerKey: 1,
      waiting: 1,
    });
  });
  afterEach(async () => {
    pool.destroy();
    await backend.stop();
  });

  function upload(framing: 'chunked' | number, ...chunks: readonly string[]): Upload {
    const job = new Upload(framing);
    const place = pool.reserve('one');
    if (typeof place === 'string') throw new Error(place);
    place.request(job, 0);
    for (const chunk of chunks) job.source.push(chunk);
    return job;
  }

  it('goes over the wire as it comes, with its length or in chunks', async () => {
    const job = upload(8, 'abc', 'defgh');
    job.source.push(null);
    const connection = await backend.connection();
    await connection.until((text) => text.endsWith('\r\n\r\nabcdefgh'));
    await until(() => job.sent?.isSent === true);
    job.connection?.destroy();
    upload('chunked', 'abc', 'defgh').source.push(null);
    const second = await backend.connection(1);
    await second.until((text) => text.endsWith('\r\n\r\n3\r\nabc\r\n5\r\ndefgh\r\n0\r\n\r\n'));
  });

  it('never goes beyond its length, where its rest would be another request', async () => {
    const job = upload(3, 'abc', 'GET /smuggled HTTP/1.1\r\n\r\n');
    await job.heard('onError');
    expect(job.errors).toMatchObject([{ kind: 'request_body' }]);
    expect(await (await backend.connection()).ended()).not.toContain('smuggled');
    expect(pool.takenCount).toBe(0);
  });

  it('whose next part can not be written leaves the response to be read, if the backend has sent one', async () => {
    const job = upload(10, 'abc');
    const connection = await backend.connection();
    await connection.until((text) => text.endsWith('abc'));
    connection.send('HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig');
    connection.socket.resetAndDestroy();
    // In the same turn: it is written before the response is read.
    job.source.push('def');
    await until(() => job.calls.includes('onComplete') || job.calls.includes('onError'));
    expect([job.status, job.body, job.errors]).toEqual([413, 'big', []]);
    expect(pool.takenCount).toBe(0);
  });

  it('whose next part can not be written ends with an error, if the backend has sent nothing', async () => {
    const job = upload(10, 'abc');
    const connection = await backend.connection();
    await connection.until((text) => text.endsWith('abc'));
    connection.socket.resetAndDestroy();
    job.source.push('def');
    await job.heard('onError');
    expect(job.errors).toMatchObject([{ kind: 'connection_lost' }]);
    expect(pool.takenCount).toBe(0);
  });

  it('that ends before its length ends the connection', async () => {
    const job = upload(10, 'abc');
    job.source.push(null);
    await job.heard('onError');
    expect(job.errors).toMatchObject([{ kind: 'request_body' }]);
    await (await backend.connection()).ended();
  });

  it('whose sender left in its middle has no end', async () => {
    const job = upload('chunked', 'abc');
    job.source.complete = false;
    job.source.push(null);
    const connection = await backend.connection();
    await connection.until((text) => text.endsWith('3\r\nabc\r\n'));
    await until(() => job.source.readableEnded);
    expect(job.sent?.isSent).toBe(false);
    job.connection?.destroy();
    expect(await connection.ended()).toMatch(/3\r\nabc\r\n$/);
  });
});
