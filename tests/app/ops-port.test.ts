import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type OpsPort, openOpsPort } from '../../src/app/ops/ops-port.ts';

/** Fewer than the port keeps open. */
const CONNECTIONS = 200;

describe('the ops port', () => {
  const sockets: Socket[] = [];
  let ops: OpsPort;

  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await ops.close();
  });

  it('responds to a probe soon that comes after hundreds of connections', async () => {
    const sources = {
      readiness: async () => ({ ready: true, components: {} }),
      metrics: async () => ({ contentType: 'text/plain', text: '' }),
    };
    ops = await openOpsPort(sources, { opsPort: 0, opsHost: '127.0.0.1' });
    const open = (bytes: string): Socket => {
      const socket = connect(ops.port, '127.0.0.1').on('error', () => {});
      socket.once('connect', () => socket.write(bytes));
      sockets.push(socket);
      return socket;
    };
    for (let i = 0; i < CONNECTIONS; i += 1) open('GET /livez HTTP/1.1\r\nHo');
    let response = '';
    open('GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n').on('data', (chunk: Buffer) => {
      response += chunk.toString();
    });
    let turns = 0;
    for (; response === '' && turns < CONNECTIONS; turns += 1) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(response).toMatch(/^HTTP\/1\.1 200 /);
    expect(turns).toBeLessThan(CONNECTIONS / 2);
  });
});
