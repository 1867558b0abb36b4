import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'undici';
import { livez, metric } from '../../reliability/support/probe.ts';
import { Admin } from '../../support/admin.ts';
import { endChild } from '../../support/end-child.ts';
import { type GatewayProcess, gatewaySettings, startGateway } from '../../support/gateway.ts';
import { startPostgresServer } from '../../support/postgres-server.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import type { Stops } from '../../support/stops.ts';
import { until } from '../../support/until.ts';

/** Where a run keeps what it has to stop, and what it says. */
export interface FairnessOptions {
  /** Of each of the two phases, without and with attack. Milliseconds. */
  readonly lastsMs: number;
  readonly report: (line: string) => void;
  readonly running: Stops;
}

/** What clients met that do no harm. */
interface Service {
  readonly requests: number;
  readonly served: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The part of the time in which the gateway had something to do that it ran: 1 on a machine with nothing else to do. */
  readonly share: number;
}

const CLIENTS = 8;
/** Between two requests of a client. Milliseconds. */
const PAUSE_MS = 20;
const REQUESTS_PER_CONNECTION = 10;
const SERVED_SHARE = 0.99;
/** How many times as long as without an attack the slowest hundredth may take, while the gateway has a core for itself. */
const P99_FACTOR = 100;
/** Another address than the attackers'. */
const LOCAL_ADDRESS = '127.0.0.2';
/** What the gateway has to run until the attackers have begun, and how long that may take on a busy machine. Milliseconds. */
const RUN_UP_MS = 3000;
const LONGEST_RUN_UP_MS = 30_000;

/** Plays every attack at once against a replica, and gives what was promised to others and not held. */
export async function runFairness({ lastsMs, report, running }: FairnessOptions): Promise<readonly string[]> {
  const gateway = await start(running);
  const admin = new Admin(gateway.url);
  await admin.makePlan('roomy', 1_000_000_000, 'day');
  const keys = await Promise.all(
    Array.from({ length: CLIENTS }, (_, n) => admin.makeKey(`honest ${n}`, 'roomy')),
  );
  const attacker = await admin.makeKey('attacker', 'roomy');
  const secrets = keys.map(({ secret }) => secret);

  const calm = await serve(gateway, secrets, lastsMs);
  report(`without attack: ${inWords(calm)}`);
  const attack = spawn(
    process.execPath,
    [
      new URL('./attack.ts', import.meta.url).pathname,
      new URL(gateway.url).port,
      new URL(gateway.opsUrl).port,
      attacker.secret,
      String(2 * (lastsMs + LONGEST_RUN_UP_MS)),
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  running.push(() => endChild(attack));
  const droppedBefore = await droppedConnections();
  const begun = await runTimes(gateway);
  const hasRunUp = async () => (await runTimes(gateway)).ran - begun.ran >= RUN_UP_MS * 1_000_000;
  await until(hasRunUp, { timeoutMs: LONGEST_RUN_UP_MS }).catch(() => {});
  const attacked = await serve(gateway, secrets, lastsMs);
  await endChild(attack);
  const dropped = (await droppedConnections()) - droppedBefore;
  const lateMs = 1000 * (await metric(gateway.opsUrl, 'tollgate_event_loop_delay_seconds', '"max"'));
  report(
    `under attack:   ${inWords(attacked)}; the gateway's event loop was late by ${lateMs.toFixed(0)} ms at most; ${dropped} connections were dropped`,
  );
  const faults = faultsOf(calm, attacked, await livez(gateway.opsUrl));
  return dropped === 0 ? faults : [...faults, `${dropped} connections found the queue of their port full`];
}

/** How long a process's first thread ran, and how long it waited for a core that something else had. Nanoseconds. */
interface RunTimes {
  readonly ran: number;
  readonly waited: number;
}

async function runTimes({ pid }: GatewayProcess): Promise<RunTimes> {
  const [ran = 0, waited = 0] = (await readFile(`/proc/${pid}/schedstat`, 'utf8')).split(' ').map(Number);
  return { ran, waited };
}

/** Connections that the ports of this machine, or of this container, had no room for so far: their clients try again after 1, 3 and 7 s. */
async function droppedConnections(): Promise<number> {
  const lines = (await readFile('/proc/net/netstat', 'utf8')).split('\n');
  const [names = [], values = []] = lines
    .filter((line) => line.startsWith('TcpExt:'))
    .map((line) => line.split(' '));
  return Number(values[names.indexOf('ListenOverflows')]);
}

function faultsOf(calm: Service, attacked: Service, livezStatus: number): readonly string[] {
  const faults: string[] = [];
  if (attacked.served < SERVED_SHARE * attacked.requests)
    faults.push(
      `${attacked.requests - attacked.served} of ${attacked.requests} honest requests failed under attack`,
    );
  // What other processes of the machine took of the gateway's time does not count against it.
  const [calmMs, attackedMs] = [calm, attacked].map(({ p99Ms, share }) => p99Ms * share) as [number, number];
  if (attackedMs > P99_FACTOR * Math.max(calmMs, 1))
    faults.push(
      `the p99 of honest requests rose from ${calmMs.toFixed(1)} to ${attackedMs.toFixed(1)} ms of the gateway's time`,
    );
  if (livezStatus !== 200) faults.push(`/livez is ${livezStatus} after the attack`);
  return faults;
}

async function start(running: FairnessOptions['running']): Promise<GatewayProcess> {
  const redis = await startRedisServer();
  running.push(() => redis.stop());
  const postgres = await startPostgresServer();
  running.push(() => postgres.stop());
  const backendUrl = await startBackend(running);
  const gateway = await startGateway({
    ...gatewaySettings(backendUrl, postgres.url, redis.url),
    // A machine that has other things to do may be late; that is no fault of Redis.
    REDIS_TIMEOUT_MS: '2000',
  });
  running.push(() => gateway.stop());
  return gateway;
}

async function startBackend(running: FairnessOptions['running']): Promise<string> {
  const backend = spawn(process.execPath, [new URL('./attacked-backend.ts', import.meta.url).pathname], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.push(() => endChild(backend));
  const [port] = (await once(backend.stdout.setEncoding('utf8'), 'data')) as [string];
  return `http://127.0.0.1:${port.trim()}`;
}

/** Clients that each send one request after the other with a key of their own, and connect anew for every few of them, as users come and go. */
async function serve(gateway: GatewayProcess, secrets: readonly string[], lastsMs: number): Promise<Service> {
  const tookMs: number[] = [];
  const before = await runTimes(gateway);
  let served = 0;
  const deadline = performance.now() + lastsMs;
  const client = async (secret: string): Promise<void> => {
    const connect = () => new Pool(gateway.url, { connections: 1, connect: { localAddress: LOCAL_ADDRESS } });
    let pool = connect();
    for (let sent = 1; performance.now() < deadline; sent += 1) {
      const startedAt = performance.now();
      const headers = { authorization: `Bearer ${secret}` };
      const status = await pool
        .request({ method: 'GET', path: '/', headers })
        .then(async ({ statusCode, body }) => {
          await body.dump();
          return statusCode;
        })
        .catch(() => 0);
      tookMs.push(performance.now() - startedAt);
      if (status === 200) served += 1;
      if (sent % REQUESTS_PER_CONNECTION === 0) {
        await pool.destroy();
        pool = connect();
      }
      await wait(PAUSE_MS);
    }
    await pool.destroy();
  };
  await Promise.all(secrets.map(client));
  const sorted = tookMs.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
  const after = await runTimes(gateway);
  const ran = after.ran - before.ran;
  const share = ran / (ran + after.waited - before.waited);
  return { requests: sorted.length, served, p50Ms: at(0.5), p99Ms: at(0.99), share };
}

function inWords({ requests, served, p50Ms, p99Ms, share }: Service): string {
  return `${served} of ${requests} honest requests served, p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, while the gateway had ${(100 * share).toFixed(0)} % of the time that it could have used`;
}
