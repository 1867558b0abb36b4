import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { type GatewayProcess, startGateway } from '../support/gateway.ts';
import { until } from '../support/until.ts';
import { type BalancedServer, type LoadBalancer, startHaproxy } from './support/haproxy.ts';
import { metric } from './support/probe.ts';
import { type SteadyLoad, startLoad } from './support/steady-load.ts';

/** `npm run test:rolling` sets it to 5000. */
const LONG_REQUEST_MS = Number(process.env.ROLLING_REQUEST_MS ?? '1000');
const IS_LONG_FORM = LONG_REQUEST_MS >= 5000;
/** As in docker-compose.yml where there is time for it, else shorter. */
const CHECK_INTERVAL_MS = IS_LONG_FORM ? 1000 : 200;
/** As there. A machine that stands still for as long leaves no time for the checks. */
const SHUTDOWN_DELAY_MS = 5000;
/** How many workers each of the replicas has. */
const FLEETS: readonly (readonly number[])[] = IS_LONG_FORM
  ? [
      [1, 1, 1],
      [2, 2, 2],
    ]
  : [[1, 2, 1]];

interface Place extends BalancedServer {
  readonly workers: number;
}

let fleet: Fleet;
let key: { readonly id: string; readonly secret: string };
let places: readonly Place[];
let balancer: LoadBalancer;
let load: SteadyLoad;
let replicas: GatewayProcess[];

/** `/late` keeps its client waiting for the response, `/slow` for the end of it. */
function respond({ url }: IncomingMessage, res: ServerResponse): void {
  if (url === '/late') {
    setTimeout(() => res.end('late'), LONG_REQUEST_MS);
  } else if (url === '/slow') {
    res.write('begun, ');
    setTimeout(() => res.end('done'), LONG_REQUEST_MS);
  } else {
    res.end('at once');
  }
}

async function start(place: Place): Promise<GatewayProcess> {
  return startGateway({
    ...fleet.environment,
    PORT: String(place.port),
    OPS_PORT: String(place.opsPort),
    WORKERS: String(place.workers),
    SHUTDOWN_DELAY_MS: String(SHUTDOWN_DELAY_MS),
  });
}

/** Starts replicas with these numbers of workers behind a load balancer. The fleet's own replica keeps out of it: the others come and go. */
async function startReplicas(workers: readonly number[]): Promise<void> {
  fleet = await startInProcessFleet(1, {}, respond);
  await fleet.admin.makePlan('rolling', 1_000_000_000, 'day');
  key = await fleet.admin.makeKey('rolling', 'rolling');
  const ports = await Promise.all(Array.from({ length: 2 * workers.length }, freePort));
  places = workers.map((own, index) => ({
    port: ports[2 * index] ?? 0,
    opsPort: ports[2 * index + 1] ?? 0,
    workers: own,
  }));
  replicas = await Promise.all(places.map(start));
  balancer = await startHaproxy(places, CHECK_INTERVAL_MS);
}

async function stopAll(): Promise<void> {
  await load?.stop();
  await balancer?.stop();
  await Promise.all(replicas.map((replica) => replica.stop()));
  await fleet?.stop();
}

async function hasServed({ opsUrl }: GatewayProcess): Promise<boolean> {
  return (await metric(opsUrl, 'tollgate_requests_total')) > 0;
}

describe.each(FLEETS)(
  'a rolling restart of replicas with %d, %d and %d workers behind a load balancer',
  (...workers) => {
    beforeAll(() => startReplicas(workers));
    afterAll(stopAll);

    it('under steady load fails no request, and loses none in the statistics', async () => {
      load = startLoad(balancer.url, key.secret, [
        { method: 'GET', path: '/', clients: 8 },
        { method: 'POST', path: '/', clients: 4 },
        { method: 'GET', path: '/late', clients: 4 },
        { method: 'GET', path: '/slow', clients: 4 },
      ]);
      for (const [index, place] of places.entries()) {
        const old = replicas[index];
        if (old === undefined) throw new Error(`there is no replica ${index}`);
        await until(() => hasServed(old));
        expect(await old.stop()).toBe(0);
        const renewed = await start(place);
        replicas[index] = renewed;
        await until(() => hasServed(renewed));
      }
      const { responses, failures } = await load.stop();
      expect(failures).toEqual([]);
      expect(responses).toBeGreaterThan(100);
      await Promise.all(replicas.map((replica) => replica.stop()));
      const { usage } = await fleet.admin.detail(key.id);
      expect(usage).toMatchObject({ totalRequests: responses, successfulRequests: responses });
    });
  },
);
