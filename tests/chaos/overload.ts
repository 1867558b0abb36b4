import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'undici';
import { sampleOf, scrape } from '../reliability/support/probe.ts';
import { Admin } from '../support/admin.ts';
import { ENCRYPTION_KEY, type GatewayProcess, ROOT_TOKEN, startGateway } from '../support/gateway.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';
import { startPostgresServer } from '../support/postgres-server.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { type Stops, stopAll } from '../support/stops.ts';

// node tests/chaos/overload.ts [seconds] [times]: as many times what a backend takes is asked of a gateway, whether it responds or not, and what
// clients and process feel is printed. Nothing is judged here: tests/reliability/overload holds the guarantee, in responses instead of seconds.

const seconds = Number(process.argv[2] ?? '30');
const times = Number(process.argv[3] ?? '10');
/** How long the backend takes for each request. Milliseconds. */
const SERVICE_MS = 200;
const CONNECTIONS = 20;
const CAPACITY = (CONNECTIONS * 1000) / SERVICE_MS;
/** Requests are sent in bundles. Milliseconds between two. */
const BUNDLE_MS = 10;
const CLIENTS = 1000;

const ends: Stops = [];
try {
  const redis = await startRedisServer();
  ends.push(() => redis.stop());
  const postgres = await startPostgresServer();
  ends.push(() => postgres.stop());
  const gateway = await startGateway({
    BACKEND_URL: await startBackend(),
    BACKEND_CONNECTIONS: String(CONNECTIONS),
    BACKEND_CONNECTIONS_PER_KEY: String(CONNECTIONS),
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    ROOT_TOKEN,
    ENCRYPTION_KEY,
  });
  ends.push(() => gateway.stop());
  const admin = new Admin(gateway.url);
  await admin.makePlan('roomy', 1_000_000_000, 'day');
  const { secret } = await admin.makeKey('overload', 'roomy');
  print(`the backend takes ${CAPACITY} requests a second; its queue is worth 4 × ${SERVICE_MS} ms`);
  await measure(gateway, { secret, name: 'half of it', rate: CAPACITY / 2, seconds: 5 });
  await measure(gateway, {
    secret,
    name: `${times} times as many`,
    rate: times * CAPACITY,
    seconds: seconds / 2,
  });
  await measure(gateway, { secret, name: 'and on', rate: times * CAPACITY, seconds: seconds / 2 });
  await measure(gateway, { secret, name: 'half of it again', rate: CAPACITY / 2, seconds: 5 });
} finally {
  await stopAll(ends);
}

async function startBackend(): Promise<string> {
  const server = createServer((_req, res) => setTimeout(() => res.end('ok'), SERVICE_MS));
  const port = await listenOnLoopback(server);
  ends.push(async () => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${port}`;
}

interface Phase {
  readonly secret: string;
  readonly name: string;
  /** Requests a second. */
  readonly rate: number;
  readonly seconds: number;
}

async function measure(gateway: GatewayProcess, phase: Phase): Promise<void> {
  const { secret, name, rate } = phase;
  const clients = new Pool(gateway.url, { connections: CLIENTS, pipelining: 1 });
  const tookMs: Record<string, number[]> = {};
  const ask = async (): Promise<void> => {
    const startedAt = performance.now();
    const response = await clients
      .request({ method: 'GET', path: '/', headers: { authorization: `Bearer ${secret}` } })
      .then(async ({ statusCode, body }) => {
        await body.dump();
        return String(statusCode);
      })
      .catch((error: Error) => error.message);
    const times = tookMs[response] ?? [];
    tookMs[response] = times;
    times.push(performance.now() - startedAt);
  };
  const startedAt = performance.now();
  const asked: Promise<void>[] = [];
  while (performance.now() < startedAt + phase.seconds * 1000) {
    // What a late timer has not sent is sent now: clients who ask do not wait for others.
    const due = ((performance.now() - startedAt) * rate) / 1000;
    while (asked.length < due) asked.push(ask());
    await wait(BUNDLE_MS);
  }
  await Promise.all(asked);
  const lasted = (performance.now() - startedAt) / 1000;
  await clients.destroy();
  print(`${name}: ${(asked.length / lasted).toFixed(0)} requests a second for ${phase.seconds} s`);
  for (const [response, list] of Object.entries(tookMs)) {
    const sorted = list.toSorted((one, other) => one - other);
    const at = (part: number): string => (sorted[Math.ceil(part * sorted.length) - 1] ?? 0).toFixed(0);
    print(
      `  ${response}: ${(list.length / lasted).toFixed(0)}/s, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`,
    );
  }
  const scraped = await scrape(gateway.opsUrl);
  const memory = sampleOf(scraped, 'process_resident_memory_bytes');
  const delay = (statistic: string): string =>
    (sampleOf(scraped, 'tollgate_event_loop_delay_seconds', `"${statistic}"`) * 1000).toFixed(0);
  print(
    `  gateway: ${(memory / 2 ** 20).toFixed(0)} MiB, event loop late by p99 ${delay('p99')} ms, longest ${delay('max')} ms`,
  );
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
