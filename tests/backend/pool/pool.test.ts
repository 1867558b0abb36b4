import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { BackendError } from '../../../src/backend/backend-error.ts';
import type { ReservedPlace, Ticket } from '../../../src/backend/pool/places.ts';
import { BackendPool, type BackendPoolOptions } from '../../../src/backend/pool/pool.ts';
import type { ReadBuffer } from '../../../src/backend/read-buffers.ts';
import { RawBackend } from '../../proxy/support/raw-backend.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';
import { RecordingJob } from '../support/recording-job.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const EVIL = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil';

let backend: RawBackend;
let pool: BackendPool;
let faults: unknown[];
/** A stall of the machine is no idle time of a connection. */
let clock: ManualClock;

function makePool(changes: Partial<BackendPoolOptions> = {}): BackendPool {
  return new BackendPool({
    url: new URL(backend.url),
    connectTimeoutMs: 5000,
    bodyIdleMs: 5000,
    clock,
    connections: 2,
    connectionsPerKey: 2,
    waiting: 4,
    onFault: (fault) => faults.push(fault),
    ...changes,
  });
}

/** Throws where there is no place. */
function reserved(key: string): ReservedPlace {
  const place = pool.reserve(key);
  if (typeof place === 'string') throw new Error(place);
  return place;
}

/** Asks for a connection. Throws where there is no place. */
function ask(job: RecordingJob, key = 'one'): Ticket {
  return reserved(key).request(job, clock.monotonicMs());
}

beforeEach(async () => {
  faults = [];
  clock = new ManualClock(0);
  backend = await RawBackend.start();
  pool = makePool();
});

afterEach(async () => {
  pool.destroy();
  await backend.stop();
});

describe('the buffer that a connection reads into', () => {
  /** Of two responses in a row on one connection, the chunk of the first and both buffers. */
  async function readTwice(retains: boolean): Promise<{ chunk: Buffer; buffers: unknown[] }> {
    const buffers: unknown[] = [];
    let chunk: Buffer = Buffer.alloc(0);
    for (const [name, response] of [
      ['first', OK.replace('ok', 'me')],
      ['second', OK],
    ] as const) {
      backend.respond(response);
      const job = new RecordingJob(name);
      job.onBody = (bytes: Buffer, buffer?: ReadBuffer) => {
        if (retains) buffer?.retain();
        if (buffers.length === 0) chunk = bytes;
        buffers.push(buffer);
      };
      ask(job);
      await job.heard('onComplete');
    }
    expect(backend.connections).toHaveLength(1);
    return { chunk, buffers };
  }

  it('is not read into again while somebody retains what is in it', async () => {
    const { chunk, buffers } = await readTwice(true);
    expect(chunk.toString()).toBe('me');
    expect(buffers[1]).not.toBe(buffers[0]);
  });

  it('is that of a later connection once its connection is closed', async () => {
    backend.respond(OK.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    const buffers: unknown[] = [];
    await until(async () => {
      const job = new RecordingJob('one');
      job.onBody = (_bytes: Buffer, buffer?: ReadBuffer) => buffers.push(buffer);
      ask(job);
      await job.heard('onComplete');
      return new Set(buffers).size < buffers.length;
    });
    expect(backend.connections).toHaveLength(buffers.length);
  });

  it('is read into again where no job retains it', async () => {
    const { chunk, buffers } = await readTwice(false);
    expect(chunk.toString()).toBe('ok');
    expect(buffers[1]).toBe(buffers[0]);
  });
});

describe('a connection that was idle', () => {
  async function usedOnce(): Promise<RecordingJob> {
    const first = new RecordingJob('first');
    ask(first);
    await (await backend.connection()).head();
    (await backend.connection()).send(OK);
    await first.heard('onComplete');
    return first;
  }

  it('carries the next request', async () => {
    await usedOnce();
    backend.respond(OK);
    const second = new RecordingJob('second');
    ask(second);
    await second.heard('onComplete');
    expect(second.body).toBe('ok');
    expect(second.connection?.isReused).toBe(true);
    expect(backend.connections).toHaveLength(1);
  });

  it('is not written to in the turn in which it is reserved', async () => {
    const first = await usedOnce();
    const second = new RecordingJob('second');
    ask(second);
    expect(second.calls).toEqual([]);
    expect(first.connection?.state).toBe('reserved');
    await second.heard('begin');
  });

  it('drops a response that lay in the socket when it was reserved', async () => {
    await usedOnce();
    const connection = await backend.connection();
    backend.onConnection((next) => next.respondToEachHead(OK));
    // In the kernel's buffer before the request, with no turn of the event loop between the two.
    connection.send(EVIL);
    const second = new RecordingJob('second');
    ask(second);
    await second.heard('onComplete');
    expect(second.body).toBe('ok');
    expect(connection.text).not.toContain('/second');
  });

  it('drops it also when the event loop is polling and stalls meanwhile', async () => {
    await usedOnce();
    const connection = await backend.connection();
    backend.onConnection((next) => next.respondToEachHead(OK));
    const second = new RecordingJob('second');
    // Data events come while the loop polls: an immediate from there runs before the loop polls again.
    const trigger = await new Promise<RecordingJob>((resolve) => {
      const third = new RecordingJob('trigger');
      const onHead = third.onHead.bind(third);
      third.onHead = (head) => {
        onHead(head);
        connection.send(EVIL);
        ask(second);
        const stalledUntil = performance.now() + 50;
        while (performance.now() < stalledUntil);
        resolve(third);
      };
      const other = makePool();
      const place = other.reserve('one');
      if (typeof place === 'string') throw new Error(place);
      place.request(third, 0);
    });
    await trigger.heard('onComplete');
    await second.heard('onComplete');
    expect(second.body).toBe('ok');
    expect(connection.text).not.toContain('/second');
    trigger.connection?.destroy();
  });

  it.each([
    ['closed', (connection: { end(): void }) => connection.end()],
    ['reset', (connection: { reset(): void }) => connection.reset()],
  ] as const)('and was %s by the backend costs the next request nothing', async (_how, close) => {
    const first = await usedOnce();
    backend.onConnection((next) => next.respondToEachHead(OK));
    close(await backend.connection());
    const second = new RecordingJob('second', { method: 'POST' });
    ask(second);
    await second.heard('onComplete');
    expect(second.errors).toEqual([]);
    expect(second.connection).not.toBe(first.connection);
  });

  it('stays for the next request when the one that it was reserved for is withdrawn', async () => {
    const first = await usedOnce();
    const second = new RecordingJob('second');
    ask(second).withdraw();
    expect(first.connection?.state).toBe('idle');
    expect(pool.takenCount).toBe(0);
    backend.respond(OK);
    const third = new RecordingJob('third');
    ask(third);
    await third.heard('onComplete');
    expect(second.calls).toEqual([]);
    expect(backend.connections).toHaveLength(1);
  });

  describe('after a while by the clock', () => {
    beforeEach(() => backend.respond(OK));

    /** The connection that carried the request. */
    async function connectionOf(name: string) {
      const job = new RecordingJob(name);
      ask(job);
      await job.heard('onComplete');
      return job.connection;
    }

    it('carries a request until it was idle for as long as the backend keeps it, less a margin', async () => {
      const first = await connectionOf('first');
      clock.advance(3999);
      expect(await connectionOf('second')).toBe(first);
      clock.advance(4000);
      expect(await connectionOf('third')).not.toBe(first);
      expect(first?.state).toBe('closed');
    });

    /** Does it every few seconds, and at that instant. */
    async function repeatUntil(ms: number, act: () => Promise<unknown>): Promise<void> {
      while (clock.monotonicMs() < ms) {
        clock.advance(Math.min(3500, ms - clock.monotonicMs()));
        await act();
      }
    }

    it('carries requests for five minutes, however often it is used', async () => {
      const first = await connectionOf('first');
      await repeatUntil(299_999, async () => expect(await connectionOf('next')).toBe(first));
      clock.advance(1);
      expect(await connectionOf('last')).not.toBe(first);
      expect(first?.state).toBe('closed');
    });

    it('is not replaced in the same moment as another that was opened with it', async () => {
      const takeBoth = () => Promise.all([connectionOf('one'), connectionOf('two')]);
      const opened = await takeBoth();
      await repeatUntil(298_000, takeBoth);
      expect(opened.map((connection) => connection?.state).sort()).toEqual(['closed', 'idle']);
    });

    it('is closed then also when no further request comes, and a younger one stays', async () => {
      const [first, other] = await Promise.all([connectionOf('first'), connectionOf('other')]);
      clock.advance(1000);
      const younger = await connectionOf('second');
      const older = younger === first ? other : first;
      clock.advance(3000);
      await until(() => older?.state === 'closed');
      expect(younger?.state).toBe('idle');
      clock.advance(4000);
      await until(() => younger?.state === 'closed');
    });
  });

  it('is read for the next response, and watched, although the last one ended while it was paused', async () => {
    pool.destroy();
    pool = makePool({ connections: 1, bodyIdleMs: 50 });
    const [first, second] = [new RecordingJob('first'), new RecordingJob('second')];
    first.onBody = () => first.connection?.pause();
    backend.respond(OK);
    ask(first);
    await first.heard('onComplete');
    backend.respond(OK.slice(0, -1));
    ask(second);
    await second.heard('onError');
    expect(second.connection).toBe(first.connection);
    expect(second).toMatchObject({ body: 'o', errors: [{ kind: 'body_timeout' }] });
  });

  it('is not kept when more bytes arrived after a response while it was not read', async () => {
    const job = new RecordingJob('one');
    const onBody = job.onBody.bind(job);
    job.onBody = (chunk) => {
      onBody(chunk);
      if (job.body === 'hel') job.connection?.pause();
    };
    ask(job);
    const connection = await backend.connection();
    await connection.head();
    connection.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel');
    await until(() => job.body === 'hel');
    connection.send('lo');
    connection.send(EVIL);
    await until(() => connection.socket.writableLength === 0);
    job.connection?.resume();
    await job.heard('onComplete');
    await until(() => job.connection?.state === 'closed');
    expect(job.body).toBe('hello');
  });
});

describe('a callback that throws', () => {
  it.each(['onHead', 'onBody', 'onReadEnd', 'onComplete'] as const)(
    '%s: the request hears of it, and its place is free',
    async (callback) => {
      const job = new RecordingJob('one', { throwsIn: callback });
      ask(job);
      const connection = await backend.connection();
      await connection.head();
      // In two parts, so that each callback comes.
      connection.send(OK.slice(0, -1));
      if (callback === 'onComplete') {
        await job.heard('onReadEnd');
        connection.send('k');
      }
      await job.heard('onError');
      expect(job.errors).toEqual([new Error(`thrown in ${callback}`)]);
      expect(pool.takenCount).toBe(0);
      expect(pool.busyCount).toBe(0);
      expect(job.connection?.state).toBe('closed');
      expect(faults).toEqual([]);
    },
  );

  it('begin: the request gets the error, and its place is free', () => {
    const job = new RecordingJob('one', { throwsIn: 'begin' });
    ask(job);
    expect(job.errors).toEqual([new Error('thrown in begin')]);
    expect(pool.takenCount).toBe(0);
    expect(pool.busyCount).toBe(0);
  });

  it('onError: is reported to the pool, and its place is free', async () => {
    const job = new RecordingJob('one', { throwsIn: 'onError' });
    ask(job);
    const connection = await backend.connection();
    await connection.head();
    connection.send('nonsense\r\n\r\n');
    await job.heard('onError');
    expect(faults).toEqual([new Error('thrown in onError')]);
    expect(pool.takenCount).toBe(0);
  });

  it('leaves the pool as good as before', async () => {
    backend.respond(OK);
    for (const throwsIn of ['begin', 'onHead', 'onBody', 'onComplete'] as const) {
      for (let i = 0; i < 5; i += 1) {
        const job = new RecordingJob(`bad-${i}`, { throwsIn });
        ask(job);
        await job.heard('onError');
      }
    }
    const good = new RecordingJob('good');
    ask(good);
    await good.heard('onComplete');
    expect(good.body).toBe('ok');
  });
});

it('a pool that is destroyed opens no connection for those that wait', async () => {
  for (const name of ['one', 'two', 'three']) ask(new RecordingJob(name));
  await until(() => backend.connections.length === 2);
  pool.destroy();
  expect([pool.connects, pool.busyCount]).toEqual([2, 0]);
});

it('a request that sends nothing on its connection leaves its place free', () => {
  const job = new RecordingJob('one');
  job.begin = () => {};
  ask(job);
  expect(pool.takenCount).toBe(0);
});

describe('a request that gets no response', () => {
  it.each([
    [
      'malformed_response',
      '',
      (connection: { send(bytes: string): void }) => connection.send('HTTP/2 200\r\n\r\n'),
    ],
    ['connection_lost', 'closed before the response', (connection: { end(): void }) => connection.end()],
    ['connection_lost', 'reset before the response', (connection: { reset(): void }) => connection.reset()],
  ] as const)('hears of %s (%s)', async (kind, message, act) => {
    const job = new RecordingJob('one');
    ask(job);
    const connection = await backend.connection();
    await connection.head();
    act(connection);
    await job.heard('onError');
    expect(job.errors).toMatchObject([{ kind, message: expect.stringContaining(message) }]);
    expect(pool.takenCount).toBe(0);
  });

  it('gets the reason why there is no connection, with the cause of the system', async () => {
    await backend.stop();
    const job = new RecordingJob('one');
    ask(job);
    await job.heard('onError');
    expect(job.errors).toMatchObject([{ kind: 'connect_failed', cause: { code: 'ECONNREFUSED' } }]);
    expect(job.errors[0]).toBeInstanceOf(BackendError);
    expect(pool.takenCount).toBe(0);
  });
});

describe('fairness keys', () => {
  const never = (): void => {};
  beforeEach(() => {
    pool.destroy();
    pool = makePool({ connections: 4, connectionsPerKey: 2, waiting: 8 });
    backend.onConnection(never);
  });

  it('have at most their share of the connections while others are served', async () => {
    const greedy = Array.from({ length: 6 }, (_, i) => new RecordingJob(`a${i}`));
    for (const job of greedy) ask(job, 'a');
    expect(greedy.filter((job) => job.calls.includes('begin'))).toHaveLength(2);
    expect(pool.waitingCount).toBe(4);
    const other = new RecordingJob('b0');
    ask(other, 'b');
    expect(other.calls).toEqual(['begin']);
  });

  it('have at most their share of the places to wait, and others find theirs', () => {
    for (let i = 0; i < 6; i += 1) ask(new RecordingJob(`a${i}`), 'a');
    expect(pool.reserve('a')).toBe('key_full');
    for (let i = 0; i < 6; i += 1) ask(new RecordingJob(`b${i}`), 'b');
    expect(pool.reserve('c')).toBe('full');
    expect(pool.takenCount).toBe(12);
  });

  it('are served in turn, however many requests of one wait', async () => {
    pool.destroy();
    pool = makePool({ connections: 1, connectionsPerKey: 1, waiting: 64 });
    backend.onConnection((connection) => connection.respondToEachHead(OK));
    const order: string[] = [];
    const asked: RecordingJob[] = [];
    for (const name of ['a0', 'a1', 'a2', 'a3', 'b0', 'c0', 'b1']) {
      const job = new RecordingJob(name);
      const complete = job.onComplete.bind(job);
      job.onComplete = () => {
        order.push(name);
        complete();
      };
      asked.push(job);
      ask(job, name[0]);
    }
    for (const job of asked) await job.heard('onComplete');
    expect(order).toEqual(['a0', 'b0', 'c0', 'a1', 'b1', 'a2', 'a3']);
    expect(backend.connections).toHaveLength(1);
    expect(pool.waitingCount).toBe(0);
  });

  it('have one queue from each request to the next, and none once they are idle', async () => {
    const place = reserved('a');
    place.cancel();
    expect(reserved('a')).toBe(place);
    place.cancel();
    await until(() => {
      const later = reserved('a');
      later.cancel();
      return later !== place;
    });
  });

  it('keep their queue for as long as one of their requests has a place', async () => {
    const place = reserved('a');
    const other = reserved('b');
    other.cancel();
    await until(() => {
      const later = reserved('b');
      later.cancel();
      return later !== other;
    });
    expect(reserved('a')).toBe(place);
  });

  it('give every place back, whatever becomes of it', async () => {
    backend.onConnection((connection) => connection.respondToEachHead(OK));
    const served = new RecordingJob('served');
    ask(served, 'a');
    await served.heard('onComplete');
    const cancelled = pool.reserve('a');
    if (typeof cancelled !== 'string') cancelled.cancel();
    backend.connections[0]?.respondToEachHead('');
    backend.onConnection(never);
    const jobs = Array.from({ length: 5 }, (_, i) => new RecordingJob(`a${i}`));
    const tickets = jobs.map((job) => ask(job, 'a'));
    for (const ticket of tickets.slice(2)) ticket.withdraw();
    for (const job of jobs.slice(0, 2)) {
      await job.heard('begin');
      job.connection?.destroy();
    }
    await until(() => pool.takenCount === 0);
    expect(pool.waitingCount).toBe(0);
    expect(pool.busyCount).toBe(0);
  });
});
