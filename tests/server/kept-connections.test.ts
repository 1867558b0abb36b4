import { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { KeptConnections } from '../../src/server/connections/kept-connections.ts';

const KEPT_MS = 8000;

describe('a connection between requests', () => {
  let connections: KeptConnections;
  let between: Socket[];
  let socket: {
    bytesWritten: number;
    writableLength: number;
    _httpMessage: ServerResponse | null;
    destroy(): void;
  };
  let isClosed: boolean;

  beforeEach(() => {
    jest.useFakeTimers();
    isClosed = false;
    socket = {
      bytesWritten: 100,
      writableLength: 0,
      _httpMessage: null,
      destroy: () => {
        isClosed = true;
      },
    };
    between = [socket as unknown as Socket];
    connections = new KeptConnections({ keptForMs: KEPT_MS, betweenRequests: () => between });
    connections.start();
  });

  afterEach(() => {
    connections.stop();
    jest.useRealTimers();
  });

  /** Whether it is closed at last, but not before it was kept for the whole time. */
  function isKeptForItsTime(): boolean {
    jest.advanceTimersByTime(KEPT_MS);
    if (isClosed) return false;
    jest.advanceTimersByTime(KEPT_MS / 4);
    return isClosed;
  }

  it('is closed after its time, whatever its client sends', () => {
    expect(isKeptForItsTime()).toBe(true);
  });

  it('has the whole time again after each response', () => {
    jest.advanceTimersByTime(KEPT_MS);
    socket.bytesWritten += 1;
    expect(isKeptForItsTime()).toBe(true);
  });

  it('has the whole time once its client has taken the response', () => {
    socket.writableLength = 1;
    jest.advanceTimersByTime(10 * KEPT_MS);
    socket.writableLength = 0;
    expect(isKeptForItsTime()).toBe(true);
  });

  it('is kept while a response is due', () => {
    socket._httpMessage = Object.create(ServerResponse.prototype);
    jest.advanceTimersByTime(10 * KEPT_MS);
    expect(isClosed).toBe(false);
  });

  it('is kept once a head has begun', () => {
    jest.advanceTimersByTime(KEPT_MS);
    between = [];
    jest.advanceTimersByTime(10 * KEPT_MS);
    expect(isClosed).toBe(false);
  });
});
