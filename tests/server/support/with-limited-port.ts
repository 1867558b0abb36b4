import { afterEach, beforeEach } from '@jest/globals';
import {
  ConnectionLimit,
  type ConnectionPressure,
} from '../../../src/server/connections/connection-limit.ts';
import { createPublicServer, type PublicServer } from '../../../src/server/public-server.ts';
import { RawPeer } from '../../proxy/support/raw-peer.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { testRequestIds } from '../../support/request-ids.ts';

/** A request that gets `ok`; no other gets a response. */
export const GET = 'GET /fast HTTP/1.1\r\nHost: a\r\n\r\n';
/** The first bytes of a request. */
export const HALF_HEAD = 'GET /slow HTTP/1.1\r\nHo';

/** A port of `host` for each test that takes `most` connections, and a clock that stands still. */
export function withLimitedPort(most: number, host = '127.0.0.1'): LimitedPort {
  const stage = new LimitedPort();
  beforeEach(() => stage.open(most, host));
  afterEach(() => stage.close());
  return stage;
}

class LimitedPort {
  clock = new ManualClock(0);
  limit = new ConnectionLimit(0);
  port = 0;
  /** What the limit has reported. */
  pressures: readonly ConnectionPressure[] = [];
  /** All that have connected. */
  readonly clients: RawPeer[] = [];
  #server: PublicServer | undefined;

  async open(most: number, host: string): Promise<void> {
    this.clock = new ManualClock(0);
    const pressures: ConnectionPressure[] = [];
    this.pressures = pressures;
    this.limit = new ConnectionLimit(most, (pressure) => pressures.push(pressure));
    this.#server = createPublicServer({
      requestIds: testRequestIds(),
      connectionLimit: this.limit,
      clock: this.clock,
      management: (req, res) => {
        if (req.url === '/fast') res.end('ok');
      },
    });
    ({ port: this.port } = await this.#server.listen(0, host));
  }

  async close(): Promise<void> {
    for (const client of this.clients.splice(0)) client.destroy();
    await this.#server?.close(0);
  }

  /** Connects, from an address of loopback, and sends `bytes`. */
  async connect(bytes = '', from?: string): Promise<RawPeer> {
    const client = await RawPeer.connect(this.port, false, from);
    this.clients.push(client);
    client.send(bytes);
    return client;
  }
}
