import type { Socket } from 'node:net';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { QuietConnections } from '../../src/http/quiet-connections.ts';

const SHORTEST = 30_000;
const LONG = 66_000;

describe('a connection', () => {
  let quiet: QuietConnections;
  let socket: { bytesRead: number; bytesWritten: number; timeout: number; setTimeout(ms: number): void };
  beforeEach(() => {
    quiet = new QuietConnections(SHORTEST);
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
  function quietTime(allowedMs: number): number {
    let tookMs = 0;
    do tookMs += socket.timeout;
    while (!quiet.isQuietFor(socket as Socket, allowedMs) && tookMs < 1_000_000);
    return tookMs;
  }

  it('is quiet for as long as is allowed, the shortest time and longer ones', () => {
    expect(quietTime(SHORTEST)).toBe(SHORTEST);
    expect(quietTime(LONG)).toBe(LONG);
  });

  it('begins anew with each byte, and then has the shortest time again', () => {
    expect(quiet.isQuietFor(socket as Socket, LONG)).toBe(false);
    expect(quiet.isQuietFor(socket as Socket, LONG)).toBe(false);
    socket.bytesRead += 1;
    expect(quietTime(SHORTEST)).toBeLessThanOrEqual(SHORTEST + socket.timeout);
    socket.bytesWritten += 1;
    expect(quietTime(LONG)).toBe(LONG);
  });
});
