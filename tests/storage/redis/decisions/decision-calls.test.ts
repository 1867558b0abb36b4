import { describe, expect, it } from '@jest/globals';
import { NotCounted } from '../../../../src/limiter/not-counted.ts';
import { DecisionCalls } from '../../../../src/storage/redis/decisions/decision-calls.ts';
import { hashSlotOf } from '../../../../src/storage/redis/decisions/hash-slot.ts';
import { type DecisionRoutes, ServerClock } from '../../../../src/storage/redis/decisions/server-routing.ts';
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
    failure: undefined as Error | undefined,
  };
  const nowMs = () => clock.monotonicMs() + server.aheadMs;
  time.learn(nowMs(), clock.monotonicMs(), clock.monotonicMs());
  const route = {
    target: {} as never,
    serverTimeAt: (instant: number) => time.atLeast(instant) ?? 0,
    learn: (serverMs: number, sentAt: number, receivedAt: number) => time.learn(serverMs, sentAt, receivedAt),
    hold: () => {},
  };
  const routes: DecisionRoutes = {
    routeOf: () => route,
    redirected: undefined,
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
      const deadline = Number(words?.split(' ')[0]);
      server.deadlines.push(deadline);
      if (server.failure !== undefined) replied(server.failure);
      else if (nowMs() >= deadline) replied(null, `${nowMs()} 4`);
      else {
        server.counted += 1;
        replied(null, `${nowMs()} 1 0 1 ${nowMs() + 1000}`);
      }
    },
  } as unknown as LuaScript;
  const calls = new DecisionCalls(routes, script, { clock, timeoutMs: 200 });
  const ask = () =>
    new Promise<{ error: Error | null; reply: readonly number[]; tookMs: number }>((resolve) =>
      calls.call({ keyId: 'key', keyNames: ['a'], words: 'b c', windows: 1 }, (error, reply, tookMs) =>
        resolve({ error, reply: reply?.numbers.slice(reply.at) ?? [], tookMs }),
      ),
    );
  return { clock, server, ask };
}

describe('a call of the decision script', () => {
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

  it('is not counted when the server rejects it; after a broken connection it may be', async () => {
    const { server, ask } = setUp();
    server.failure = Object.assign(new Error('OOM command not allowed'), { name: 'ReplyError' });
    expect((await ask()).error).toBeInstanceOf(NotCounted);
    server.failure = new Error('Connection is closed.');
    expect((await ask()).error).not.toBeInstanceOf(NotCounted);
  });
});

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
