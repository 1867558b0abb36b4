import type { Socket } from 'node:net';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { IdleTimeouts } from '../../src/server/connections/idle-timeouts.ts';

const SHORTEST = 30_000;
const LONG = 66_000;

describe('a connection', () => {
  let quiet: IdleTimeouts;
  let socket: { bytesRead: number; bytesWritten: number; timeout: number; setTimeout(ms: number): void };
  beforeEach(() => {
    quiet = new IdleTimeouts(SHORTEST);
    socket = {
      bytesRead: 0,
      bytesWritten: 0,
      timeout: SHORTEST,
      setTimeout(ms) {
        this.timeout = ms;
      },
    };
  });

  /** Lets the timer ring until the connection has been quiet for long enough; how long that took. */
  function idleTime(allowedMs: number): number {
    let tookMs = 0;
    do tookMs += socket.timeout;
    while (!quiet.isIdleFor(socket as Socket, allowedMs) && tookMs < 1_000_000);
    return tookMs;
  }

  it('is quiet for as long as is allowed, the shortest time and longer ones', () => {
    expect(idleTime(SHORTEST)).toBe(SHORTEST);
    expect(idleTime(LONG)).toBe(LONG);
  });

  it('starts again with each byte, and then has the shortest timeout again', () => {
    expect(quiet.isIdleFor(socket as Socket, LONG)).toBe(false);
    expect(quiet.isIdleFor(socket as Socket, LONG)).toBe(false);
    socket.bytesRead += 1;
    expect(idleTime(SHORTEST)).toBeLessThanOrEqual(SHORTEST + socket.timeout);
    socket.bytesWritten += 1;
    expect(idleTime(LONG)).toBe(LONG);
  });
});
