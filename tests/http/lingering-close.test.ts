import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { lingeringClose } from '../../src/http/connections/lingering-close.ts';
import { fakeIntervals } from '../support/fake-intervals.ts';
import { until } from '../support/until.ts';

describe('a connection that the gateway closes', () => {
  let server: Server;
  let client: Socket;
  let socket: Socket;

  beforeEach(async () => {
    server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    client = connect({
      port: typeof address === 'object' && address ? address.port : 0,
      host: '127.0.0.1',
      allowHalfOpen: true,
    });
    client.on('error', () => {});
    [[socket]] = await Promise.all([once(server, 'connection'), once(client, 'connect')]);
    fakeIntervals();
    lingeringClose(socket);
  });

  afterEach(async () => {
    jest.useRealTimers();
    for (const each of [client, socket]) each.destroy();
    server.close();
    await once(server, 'close');
  });

  async function sendMore(bytes = 512): Promise<void> {
    const expected = socket.bytesRead + bytes;
    client.write(Buffer.alloc(bytes));
    await until(() => socket.bytesRead === expected);
  }

  it('is read while its client sends, for 30 s at most', async () => {
    for (let seconds = 2; seconds < 30; seconds += 2) {
      await sendMore();
      jest.advanceTimersByTime(2000);
      expect(socket.destroyed).toBe(false);
    }
    await sendMore();
    jest.advanceTimersByTime(2000);
    expect(socket.destroyed).toBe(true);
  });

  it('is cut when no byte came for 2 s', async () => {
    await sendMore();
    jest.advanceTimersByTime(2000);
    expect(socket.destroyed).toBe(false);
    jest.advanceTimersByTime(2000);
    expect(socket.destroyed).toBe(true);
  });

  it('is cut when only a few bytes came in 2 s', async () => {
    await sendMore(511);
    jest.advanceTimersByTime(2000);
    expect(socket.destroyed).toBe(true);
  });

  it('leaves no timer behind when its client closes', async () => {
    client.end();
    await once(socket, 'close');
    expect(jest.getTimerCount()).toBe(0);
  });
});
