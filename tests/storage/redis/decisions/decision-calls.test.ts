import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { NotCounted } from '../../../../src/limiter/not-counted.ts';
import {
  CALL_DURATION_BOUNDS_MS,
  CallDurations,
  type CallEnded,
  DecisionCalls,
} from '../../../../src/storage/redis/decisions/decision-calls.ts';
import { callDecision } from '../../../../src/storage/redis/decisions/decision-messages.ts';
import { hashSlotOf } from '../../../../src/storage/redis/decisions/hash-slot.ts';
import {
  type DecisionRoute,
  type DecisionRoutes,
  ServerClock,
} from '../../../../src/storage/redis/decisions/server-routing.ts';
import type { LuaScript } from '../../../../src/storage/redis/lua-script.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const SERVER_AHEAD_MS = 90_000_000;

/** A server whose clock is far from ours, and that decides as the decision script does about deadlines. */
function setUp() {
  const clock = new ManualClock(1000);
  const time = new ServerClock();
  const server = {
    aheadMs: SERVER_AHEAD_MS,
    deadlines: [] as number[],
    counted: 0,
    /** What it says to its next calls, in place of deciding them. */
    failures: [] as Error[],
    isCluster: false,
    /** How far its clock is set forward before each call. */
    setForwardMs: 0,
    isSilent: false,
    /** Sends the replies that it has kept back. */
    late: [] as (() => void)[],
  };
  const nowMs = () => clock.monotonicMs() + server.aheadMs;
  time.learn(nowMs(), clock.monotonicMs(), clock.monotonicMs());
  const route: DecisionRoute = {
    send: (sent, onReply) => callDecision(script, {} as never, sent, onReply),
    serverTimeAt: (instant) => time.atLeast(instant) ?? 0,
    learn: (serverMs, sentAt, receivedAt) => time.learn(serverMs, sentAt, receivedAt),
  };
  const routes: DecisionRoutes = {
    routeOf: () => route,
    get redirected() {
      return server.isCluster ? route : undefined;
    },
    suspect: () => {},
    areReady: true,
    ping: async () => {},
  };
  const script = {
    callWithKeys: (
      _target: unknown,
      _keys: readonly string[],
      [words]: readonly string[],
      replied: (error: Error | null, reply?: unknown) => void,
    ) => {
      if (server.isSilent) {
        server.late.push(() => replied(null, `${nowMs()} 4`));
        return;
      }
      const deadline = Number(words?.split(' ')[0]);
      server.deadlines.push(deadline);
      server.aheadMs += server.setForwardMs;
      const failure = server.failures.shift();
      if (failure !== undefined) replied(failure);
      else if (nowMs() >= deadline) replied(null, `${nowMs()} 4`);
      else {
        server.counted += 1;
        replied(null, `${nowMs()} 1 0 1 ${nowMs() + 1000}`);
      }
    },
  } as unknown as LuaScript;
  const calls = new DecisionCalls(routes, { clock, timeoutMs: 200 });
  const call = (ended: CallEnded) =>
    calls.call({ keyId: 'key', keyNames: ['a'], words: 'b c', windows: 1 }, ended);
  const ask = () =>
    new Promise<{ error: Error | null; reply: readonly number[]; tookMs: number }>((resolve) =>
      call((error, reply, tookMs) => resolve({ error, reply: reply?.numbers.slice(reply.at) ?? [], tookMs })),
    );
  return { clock, server, call, ask };
}

describe('a call of the decision script', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it('tells the server until when it is waited for, by a clock that is a day ahead', async () => {
    const { clock, server, ask } = setUp();
    expect((await ask()).reply[0]).toBe(1);
    expect(server.deadlines).toEqual([clock.monotonicMs() + SERVER_AHEAD_MS + 200]);
  });

  it('is sent again, and counted once, when the clock of the server was set forward', async () => {
    const { server, ask } = setUp();
    server.aheadMs += 5000;
    expect((await ask()).reply[0]).toBe(1);
    expect(server.counted).toBe(1);
    expect(server.deadlines).toHaveLength(2);
    await ask();
    expect(server.deadlines).toHaveLength(3);
  });

  it('is given up, uncounted, when the clock of the server was set forward once more', async () => {
    const { server, ask } = setUp();
    server.setForwardMs = 5000;
    expect((await ask()).error).toBeInstanceOf(NotCounted);
    expect([server.counted, server.deadlines.length]).toEqual([0, 2]);
  });

  it('learns with the next response that the clock was set back', async () => {
    const { clock, server, ask } = setUp();
    server.aheadMs -= 5000;
    await ask();
    await ask();
    expect(server.deadlines.at(-1)).toBe(clock.monotonicMs() + SERVER_AHEAD_MS - 5000 + 200);
  });

  it('gets no more time for a pause of the process than has passed since it was made', async () => {
    const { clock, server, ask } = setUp();
    await ask();
    clock.advance(100);
    server.aheadMs += 5000;
    expect((await ask()).tookMs).toBe(0);
    expect(server.deadlines.at(-1)).toBe(clock.monotonicMs() + server.aheadMs + 200);
  });

  it('ends once, at its timeout, and a late reply to it ends no other call', () => {
    jest.useFakeTimers();
    const { clock, server, call } = setUp();
    server.isSilent = true;
    const ended: string[] = [];
    const pass = (ms: number): void => {
      // In steps that are no pause of the process.
      for (let passed = 0; passed < ms; passed += 25) {
        clock.advance(25);
        jest.advanceTimersByTime(25);
      }
    };
    call(() => ended.push('first'));
    pass(100);
    call(() => ended.push('second'));
    pass(150);
    expect(ended).toEqual(['first']);
    server.late[0]?.();
    expect(ended).toEqual(['first']);
    pass(100);
    expect(ended).toEqual(['first', 'second']);
  });

  it('is not counted when the server rejects it; after a broken connection it may be', async () => {
    const { server, ask } = setUp();
    server.failures.push(replyError('OOM command not allowed'));
    expect((await ask()).error).toBeInstanceOf(NotCounted);
    server.failures.push(new Error('Connection is closed.'));
    expect((await ask()).error).not.toBeInstanceOf(NotCounted);
  });

  it('follows one redirection of a cluster, and is not counted after a second one', async () => {
    const { server, ask } = setUp();
    server.isCluster = true;
    const moved = replyError('MOVED 3999 127.0.0.1:6381');
    server.failures.push(moved);
    expect((await ask()).reply[0]).toBe(1);
    expect([server.counted, server.deadlines.length]).toEqual([1, 2]);
    server.failures.push(moved, moved);
    expect((await ask()).error).toBeInstanceOf(NotCounted);
    expect([server.counted, server.deadlines.length]).toEqual([1, 4]);
  });

  it('is sent again while the servers of a cluster do not agree, but not after another rejection', async () => {
    const { server, ask } = setUp();
    server.isCluster = true;
    const sentAround = new Error('Too many Cluster redirections. Last error: MOVED');
    server.failures.push(sentAround, sentAround);
    expect((await ask()).reply[0]).toBe(1);
    expect([server.counted, server.deadlines.length]).toEqual([1, 3]);
    server.failures.push(replyError('OOM command not allowed'));
    expect((await ask()).error).toBeInstanceOf(NotCounted);
    expect(server.deadlines).toHaveLength(4);
  });
});

describe('the durations of calls', () => {
  it('are counted in the first bucket that holds them, and added up', () => {
    const durations = new CallDurations();
    const [first = 0, second = 0] = CALL_DURATION_BOUNDS_MS;
    const last = CALL_DURATION_BOUNDS_MS.length;
    for (const tookMs of [first, second, second, 1_000_000]) durations.add(tookMs);
    expect(durations.count).toBe(4);
    expect(durations.sumMs).toBe(first + 2 * second + 1_000_000);
    expect([0, 1, last].map((index) => durations.buckets[index])).toEqual([1, 2, 1]);
  });
});

function replyError(message: string): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' });
}

describe('the slot of a key', () => {
  it.each([
    ['123456789', 12_739],
    ['', 0],
    ['key_01J9ZZZZZZZZZZZZZZZZZZZZZZ', undefined],
  ])('is the one that the cluster specification says: %j', (tag, slot) => {
    expect(hashSlotOf(tag)).toBeLessThan(16_384);
    if (slot !== undefined) expect(hashSlotOf(tag)).toBe(slot);
  });
});
