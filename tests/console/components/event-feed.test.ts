/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ManagementFault } from '../../../src/client/management-fault.ts';
import { EventFeed } from '../../../src/console/api/event-feed.ts';

/** A stream that the test writes. */
class Connection {
  readonly lastId: string | undefined;
  readonly signal: AbortSignal;
  #controller: ReadableStreamDefaultController<string> | undefined;
  readonly chunks: ReadableStream<string>;

  constructor(lastId: string | undefined, signal: AbortSignal) {
    this.lastId = lastId;
    this.signal = signal;
    this.chunks = new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
    });
    signal.addEventListener('abort', () => this.#controller?.error(signal.reason));
  }

  async send(chunk: string): Promise<void> {
    this.#controller?.enqueue(chunk);
    await settled();
  }

  async end(): Promise<void> {
    this.#controller?.close();
    await settled();
  }
}

/** Everything that needs no time has happened. The timers of Node's module are real ones. */
const settled = async () => {
  for (let turn = 0; turn < 3; turn += 1) await setImmediate();
};
/** In steps, because a timer may be set only after what another one led to. */
const advance = async (ms: number) => {
  for (let passed = 0; passed < ms; passed += 500) {
    jest.advanceTimersByTime(500);
    await settled();
  }
};
const OPEN = ': open\n\n';
const HEARTBEAT = ': heartbeat\n\n';
const eventOf = (id: number, type: string) => `id: ${id}\ndata: {"type":"${type}"}\n\n`;

const followers: (() => void)[] = [];
let connections: Connection[];
let rejection: unknown;
let feed: EventFeed;
let seen: string[];
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] });
  connections = [];
  rejection = undefined;
  seen = [];
  feed = new EventFeed(async (lastId, signal) => {
    const connection = new Connection(lastId, signal);
    connections.push(connection);
    if (rejection !== undefined) throw rejection;
    return connection.chunks;
  });
});
afterEach(() => {
  for (const leave of followers.splice(0)) leave();
  feed.close();
  setHidden(false);
  jest.useRealTimers();
});

function follow(): () => void {
  const leave = feed.follow({
    onState: () => seen.push(feed.isOpen ? 'open' : 'ended'),
    onEvents: (types) => seen.push([...types].join(' ')),
  });
  followers.push(leave);
  return leave;
}

function setHidden(hidden: boolean): void {
  Object.defineProperty(document, 'hidden', { configurable: true, value: hidden });
  document.dispatchEvent(new Event('visibilitychange'));
}

function rejectionOf(status: number): ManagementFault {
  return new ManagementFault(new Response(null, { status }), { error: 'No.', code: 'x' });
}

describe('the stream of events of a tab', () => {
  it('is one for all that follow it, and tells of many events at once', async () => {
    follow();
    follow();
    await settled();
    expect(connections).toHaveLength(1);
    expect(feed.isOpen).toBe(false);
    await connections[0]?.send(OPEN);
    expect(seen).toEqual(['open', 'open']);
    await connections[0]?.send(eventOf(1, 'a') + eventOf(2, 'a'));
    await connections[0]?.send(eventOf(3, 'b'));
    expect(seen).toHaveLength(2);
    await advance(500);
    expect(seen.slice(2)).toEqual(['a b', 'a b']);
  });

  it('goes on after the last event when it ends, and says that it is away meanwhile', async () => {
    follow();
    await settled();
    await connections[0]?.send(OPEN + eventOf(7, 'a'));
    await connections[0]?.end();
    expect(seen).toEqual(['open', 'ended']);
    await advance(1000);
    expect(connections.map(({ lastId }) => lastId)).toEqual([undefined, '7']);
  });

  it('is made again if it is silent for longer than the gateway ever is', async () => {
    follow();
    await settled();
    await connections[0]?.send(OPEN);
    await advance(44_000);
    await connections[0]?.send(HEARTBEAT);
    await advance(44_000);
    expect(feed.isOpen).toBe(true);
    await advance(2000);
    expect(connections).toHaveLength(2);
    expect(connections[0]?.signal.aborted).toBe(true);
  });

  it('is tried again ever more seldom while the gateway is away', async () => {
    rejection = rejectionOf(503);
    follow();
    await advance(6 * 60_000);
    expect(connections.length).toBeGreaterThan(5);
    expect(connections.length).toBeLessThan(15);
    rejection = undefined;
    const before = connections.length;
    while (connections.length === before) await advance(1000);
    await connections.at(-1)?.send(OPEN);
    expect(feed.isOpen).toBe(true);
  });

  it('is not asked for again after a rejection, of which the audit log has an entry', async () => {
    rejection = rejectionOf(403);
    const leave = follow();
    await advance(600_000);
    leave();
    follow();
    setHidden(true);
    setHidden(false);
    await settled();
    expect(connections).toHaveLength(1);
  });

  it('closes a while after the tab is hidden or no one follows it, and opens again', async () => {
    const leave = follow();
    await settled();
    await connections[0]?.send(OPEN);
    setHidden(true);
    await advance(29_000);
    setHidden(false);
    await advance(2000);
    expect(feed.isOpen).toBe(true);
    await connections[0]?.send(HEARTBEAT);
    setHidden(true);
    await advance(30_000);
    expect([feed.isOpen, connections[0]?.signal.aborted]).toEqual([false, true]);
    setHidden(false);
    await settled();
    await connections[1]?.send(OPEN);
    leave();
    expect(feed.isOpen).toBe(true);
    await advance(30_000);
    expect([feed.isOpen, connections[1]?.signal.aborted]).toEqual([false, true]);
    expect(connections).toHaveLength(2);
  });

  it('closes at once when the session ends, and tells of nothing any more', async () => {
    follow();
    await settled();
    await connections[0]?.send(OPEN + eventOf(1, 'a'));
    feed.close();
    await advance(10_000);
    expect(seen).toEqual(['open', 'ended']);
    expect([connections.length, connections[0]?.signal.aborted]).toEqual([1, true]);
  });

  it('outlasts an event that is not JSON', async () => {
    follow();
    await settled();
    await connections[0]?.send(`${OPEN}id: 1\ndata: {\n\n`);
    await connections[0]?.send(eventOf(2, 'a'));
    await advance(500);
    expect(seen).toEqual(['open', 'a']);
  });
});
