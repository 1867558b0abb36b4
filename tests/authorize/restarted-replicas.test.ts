import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { metric } from '../reliability/support/probe.ts';
import { type SteadyLoad, startLoad } from '../reliability/support/steady-load.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { type GatewayProcess, startGateway } from '../support/gateway.ts';
import type { RunningProgram } from '../support/running-program.ts';
import { until } from '../support/until.ts';
import { ask, original } from './support/ask.ts';
import { startDocumentedBalancer } from './support/documented-balancer.ts';
import { GATEWAY_KINDS, type GatewayKind, startFrontGateway } from './support/documented-gateways.ts';

const CHECK_INTERVAL_MS = 200;
/** Many times as long as the balancer needs to notice that a replica is not ready, also where it stands still meanwhile. Milliseconds. */
const SHUTDOWN_DELAY_MS = 4000;
const LIMIT = 200;

interface Place {
  readonly publicPort: number;
  readonly port: number;
  readonly opsPort: number;
}

/** Its replica makes the records, and is asked nothing else: the others come and go. */
let fleet: Fleet;
let backend: Server;
let places: readonly Place[];
let replicas: GatewayProcess[] = [];
let balancer: RunningProgram;
const fronts = new Map<GatewayKind, RunningProgram>();
const loads: SteadyLoad[] = [];
beforeAll(async () => {
  fleet = await startInProcessFleet(1);
  // Idle connections stay: a request on one that is just being closed would fail, and no gateway sends all of them again.
  backend = createServer({ keepAliveTimeout: 0 }, (req, res) => {
    req.resume();
    res.end('from the backend');
  }).listen(0, '127.0.0.1');
  const ports = await Promise.all(Array.from({ length: 6 }, freePort));
  places = [0, 3].map((at) => ({
    ...{ publicPort: ports[at] ?? 0, port: ports[at + 1] ?? 0, opsPort: ports[at + 2] ?? 0 },
  }));
  replicas = await Promise.all(places.map(start));
  balancer = await startDocumentedBalancer(places, CHECK_INTERVAL_MS);
  const neighbours = {
    tollgatePort: balancer.port,
    backendPort: (backend.address() as AddressInfo).port,
  };
  for (const kind of GATEWAY_KINDS) fronts.set(kind, await startFrontGateway(kind, neighbours));
});
afterAll(async () => {
  await Promise.all(loads.map((load) => load.stop()));
  await Promise.all([...fronts.values()].map((front) => front.stop()));
  await balancer?.stop();
  await Promise.all(replicas.map((replica) => replica.stop()));
  backend?.closeAllConnections();
  backend?.close();
  await fleet?.stop();
});

function start({ publicPort, port, opsPort }: Place): Promise<GatewayProcess> {
  return startGateway({
    ...fleet.environment,
    PORT: String(publicPort),
    AUTHORIZE_PORT: String(port),
    OPS_PORT: String(opsPort),
    TRUSTED_PROXIES: '127.0.0.1',
    SHUTDOWN_DELAY_MS: String(SHUTDOWN_DELAY_MS),
  });
}

const frontUrl = (kind: GatewayKind): string => `http://127.0.0.1:${fronts.get(kind)?.port}`;

describe('two replicas behind gateways, all configured as documented,', () => {
  it('allow exactly the limit over the proxy, /authorize and each gateway', async () => {
    await fleet.admin.makePlan('exact', LIMIT, 'day');
    const { secret } = await fleet.admin.makeKey('exact', 'exact');
    const headers = original(secret);
    const ways = [
      ...[...GATEWAY_KINDS.map(frontUrl), ...replicas.map(({ url }) => url)].map(
        (url) => async () => (await ask(url, '/', { headers })).status,
      ),
      ...replicas.map(
        ({ authorizeUrl }) =>
          async () =>
            (await ask(authorizeUrl, '/authorize/original', { headers })).status,
      ),
    ];
    const statuses = new Map<number, number>();
    const client = async (ask: () => Promise<number>): Promise<void> => {
      for (let i = 0; i < LIMIT / ways.length; i += 1) {
        const status = await ask();
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    // Twice as many as the limit.
    await Promise.all([...ways, ...ways].map(client));
    const asked = 2 * ways.length * Math.ceil(LIMIT / ways.length);
    expect(Object.fromEntries(statuses)).toEqual({ 200: LIMIT, 429: asked - LIMIT });
  });

  it('fail no request of any gateway while each is restarted under load, and count each once', async () => {
    await fleet.admin.makePlan('rolling', 1_000_000_000, 'day');
    const keys: string[] = [];
    for (const kind of GATEWAY_KINDS) {
      const { id, secret } = await fleet.admin.makeKey(kind, 'rolling');
      keys.push(id);
      loads.push(
        startLoad(frontUrl(kind), secret, [
          { method: 'GET', path: '/', clients: 3 },
          { method: 'POST', path: '/', clients: 1 },
        ]),
      );
    }
    const hasDecided = async ({ opsUrl }: GatewayProcess): Promise<boolean> =>
      (await metric(opsUrl, 'tollgate_requests_total', 'route="authorize"')) > 0;
    for (const [index, place] of places.entries()) {
      const old = replicas[index];
      if (old === undefined) throw new Error(`there is no replica ${index}`);
      await until(() => hasDecided(old));
      expect(await old.stop()).toBe(0);
      const renewed = await start(place);
      replicas[index] = renewed;
      await until(() => hasDecided(renewed));
    }
    const reports = await Promise.all(loads.map((load) => load.stop()));
    await Promise.all(replicas.map((replica) => replica.stop()));
    for (const [index, { responses, failures }] of reports.entries()) {
      const { usage } = await fleet.admin.detail(keys[index] ?? '');
      expect({ kind: GATEWAY_KINDS[index], failures, usage }).toMatchObject({
        kind: GATEWAY_KINDS[index],
        failures: [],
        usage: { totalRequests: responses, successfulRequests: responses },
      });
      expect(responses).toBeGreaterThan(25);
    }
  });
});
