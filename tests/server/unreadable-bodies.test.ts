import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type ServedRequest, withRequestId } from '../../src/http/with-request-id.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { CLIENT_TIMEOUTS } from '../../src/server/connections/client-timeouts.ts';
import { createPublicServer, type PublicServer } from '../../src/server/public-server.ts';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { testRequestIds } from '../support/request-ids.ts';
import { until } from '../support/until.ts';

describe('a body of a management request that can not be read', () => {
  const requestIds = testRequestIds();
  let server: PublicServer;
  let client: RawPeer;
  let served: ServedRequest[];

  beforeEach(() => {
    served = [];
  });

  afterEach(async () => {
    client.destroy();
    await server.close(0);
  });

  async function send(bytes: string, options: { idleMs?: number; windowMs?: number }): Promise<void> {
    const { idleMs = 30_000, windowMs = 30_000 } = options;
    const app = withRequestId((req, res) => void req.on('end', () => res.end()).resume(), {
      requestIds,
      clock: systemClock,
      onServed: (request) => served.push(request),
    });
    server = createPublicServer({
      management: app,
      requestIds,
      timeouts: { ...CLIENT_TIMEOUTS, idleMs },
      uploadRate: { bytesPerSecond: 1000, windowMs },
    });
    const { port } = await server.listen(0, '127.0.0.1');
    client = await RawPeer.connect(port);
    client.send(`POST /rate-limit/create HTTP/1.1\r\nHost: a\r\n${bytes}`);
  }

  it.each([
    ['comes too slowly', 'Content-Length: 9\r\n\r\n', { windowMs: 100 }, 408, 'request_timeout'],
    ['does not come at all', 'Content-Length: 9\r\n\r\n', { idleMs: 100 }, 408, 'request_timeout'],
    ['has a malformed chunk', 'Transfer-Encoding: chunked\r\n\r\nx\r\n', {}, 400, 'bad_request'],
  ])(
    'is logged with its request, status and code, when it %s',
    async (_how, bytes, options, status, code) => {
      await send(bytes, options);
      expect(await client.ended()).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*X-Request-Id: [^]*"${code}"`));
      await until(() => served.length === 1);
      expect(served).toMatchObject([{ path: '/rate-limit/create', status, notes: { errorCode: code } }]);
    },
  );
});
