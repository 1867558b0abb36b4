import { SOCKETS_OF_A_PORT } from '../../src/server/listening-sockets.ts';
import { metric } from '../reliability/support/probe.ts';
import { Admin } from '../support/admin.ts';
import { until } from '../support/until.ts';
import { type Attempt, CLIENTS } from './load.ts';
import { BACKEND_TIMEOUT_MS, type ChaosKey, type World } from './world.ts';

/** How long a fault may be felt after it: time-outs, circuits that close again, connections that are made again. Milliseconds. */
const AFTERMATH_MS = 12_000;
/** Usage is written every 250 ms; on a busy machine the timer is late. Milliseconds. */
const UNWRITTEN_MS = 1500;
/** How long after an outage of Redis a replica may still hold what it could not write. Milliseconds. */
const WRITTEN_AGAIN_MS = 5000;
/** Those that listen on `PORT`, `OPS_PORT` and `AUTHORIZE_PORT`, the connections that nginx keeps, and the rest. */
const MOST_OPEN_FILES = 3 * SOCKETS_OF_A_PORT + CLIENTS + 56;
/** Until nginx, which is another process, knows that the replica that it asks is gone. Milliseconds. */
const NGINX_NOTICES_MS = 1000;
const MOST_MEMORY_BYTES = 512 * 2 ** 20;
/** What is zero without requests. */
const LOADS = [
  'tollgate_requests_in_flight',
  'tollgate_backend_requests_in_use',
  'tollgate_backend_requests_queued',
];
/** What a list of faults is cut to. */
const SHOWN = 5;

/** What was done to a world, and by whom. */
export interface Round {
  readonly world: World;
  /** Made for this round. */
  readonly keys: readonly ChaosKey[];
  readonly attempts: readonly Attempt[];
  readonly report: (line: string) => void;
}

/** All that was promised and not held, one sentence each; to be called when the faults are over and the load has stopped. */
export async function verdict(round: Round): Promise<readonly string[]> {
  const { world, attempts } = round;
  const usage: string[] = [];
  for (const key of round.keys) usage.push(...(await wrongUsage(key, round)));
  return [
    ...faultsOfReplicas(world),
    ...unanswered(attempts),
    ...unexplained(world, attempts),
    ...overLimit(round),
    ...usage,
    ...(await leaks(round)),
  ];
}

/** A replica ends cleanly, unless Redis took no usage from it then. Each fault is reported once. */
function faultsOfReplicas({ replicas, troubles }: World): readonly string[] {
  return replicas
    .flatMap(({ faults }) => faults.splice(0))
    .filter(({ usageLostFrom: since, at }) => since === undefined || !troubles.redis.touch(since, at))
    .map(({ what }) => what);
}

/** Every request has a response, unless its replica was ended meanwhile. */
function unanswered(attempts: readonly Attempt[]): readonly string[] {
  return some(
    attempts.filter(({ end, replica: { absences }, startedAt, endedAt }) =>
      end === 'late' ? true : end === 'none' && !absences.touch(startedAt, endedAt),
    ),
    'without a response although their replica lived',
  );
}

/** Every response but 200 and 429 has a cause among the faults. */
function unexplained({ troubles }: World, attempts: readonly Attempt[]): readonly string[] {
  const isExplained = ({ end, status, startedAt, endedAt, replica, way }: Attempt): boolean => {
    const backendFailed = troubles.backend.touch(startedAt - BACKEND_TIMEOUT_MS, endedAt);
    const storeFailed =
      troubles.redis.touch(startedAt - AFTERMATH_MS, endedAt) ||
      troubles.postgres.touch(startedAt - AFTERMATH_MS, endedAt);
    if (end === 'cut') return backendFailed || replica.absences.touch(startedAt, endedAt);
    // Time counts from the request's start: what waits for a store for so long has none left for the backend.
    if (status === 504)
      return (
        backendFailed ||
        troubles.postgres.touch(startedAt, endedAt) ||
        troubles.redis.touch(startedAt, endedAt)
      );
    if (status === 502) return backendFailed;
    // Without its replica nginx rejects.
    const isAway = way === 'nginx' && replica.absences.touch(startedAt - NGINX_NOTICES_MS, endedAt);
    if (status === 503) return storeFailed || backendFailed || isAway;
    return status === 200 || status === 429;
  };
  return some(
    attempts.filter((attempt) => attempt.end !== 'none' && attempt.end !== 'late' && !isExplained(attempt)),
    'with a response that no fault explains',
  );
}

/** Redis allows the limit and no more, in every window and over both ways in; and nothing else allows a request while Redis is healthy. */
function overLimit({ world: { troubles }, keys, attempts }: Round): readonly string[] {
  const faults: string[] = [];
  for (const key of keys) {
    const allowed = attempts.filter((attempt) => attempt.key.id === key.id && isAllowed(attempt));
    for (const [window, counted] of Map.groupBy(allowed, ({ window }) => window)) {
      if (window !== undefined && counted.length > key.limit) {
        faults.push(`${counted.length} requests were allowed in a window of ${key.limit}`);
      }
    }
    const uncounted = allowed.filter(
      ({ window, startedAt, endedAt }) =>
        window === undefined && !troubles.redis.touch(startedAt - AFTERMATH_MS, endedAt),
    );
    faults.push(...some(uncounted, 'allowed without Redis although it was well'));
  }
  return faults;
}

/** What nginx itself responds for a backend that fails does not say in which window the request was counted. */
function isAllowed({ status, way }: Attempt): boolean {
  return way === 'nginx' ? status === 200 : status !== 0 && status !== 429 && status !== 503;
}

/** The sums are those of the responses, but for what was unclear to the client and what killed replicas took with them. */
async function wrongUsage(key: ChaosKey, round: Round): Promise<readonly string[]> {
  const { world, report } = round;
  const attempts = round.attempts.filter(({ key: { id } }) => id === key.id);
  const isSure = ({ end, status, replica, startedAt, endedAt }: Attempt): boolean =>
    (end === 'complete' || (end === 'cut' && !replica.absences.touch(startedAt, endedAt))) && status !== 503;
  const sure = attempts.filter(isSure).length;
  const lost = attempts.filter((attempt) => mayBeLost(world, attempt)).length;
  const [least, most] = [sure - lost, attempts.length];
  const admin = new Admin(world.replicas[0]?.url ?? '');
  const read = async (): Promise<{
    totalRequests: number;
    successfulRequests: number;
    failedRequests: number;
  }> => (await admin.detail(key.id)).usage;
  await until(async () => (await read()).totalRequests >= least, { timeoutMs: 20_000 }).catch(() => {});
  const { totalRequests: total, successfulRequests, failedRequests } = await read();
  report(`${total} requests counted of ${attempts.length} sent: ${sure} for sure, ${lost} of them at risk`);
  const faults: string[] = [];
  const isRight = (requests: number): boolean => requests >= least && requests <= most;
  if (!isRight(total)) {
    faults.push(`${total} requests are in the statistics of a key that made ${least} to ${most}`);
    await reportUsage(round, async () => isRight((await read()).totalRequests));
  }
  if (successfulRequests + failedRequests !== total)
    faults.push('successful and failed requests do not add up');
  return faults;
}

/** What tells wrong counts from late ones: whether they are right a minute later, and what the replicas say of their usage. */
async function reportUsage({ world, report }: Round, isRight: () => Promise<boolean>): Promise<void> {
  const isLate = await until(isRight, { timeoutMs: 60_000 }).then(
    () => true,
    () => false,
  );
  report(isLate ? 'the statistics are right now' : 'a minute later they are not right either');
  for (const [index, replica] of world.replicas.entries()) {
    const page = await (await fetch(`${replica.opsUrl}/metrics`)).text();
    const metrics = page.match(/^tollgate_usage_.* .*[1-9].*$/gm) ?? [];
    report(`replica ${index}: ${metrics.join(', ')}`);
  }
}

/**
 * Whether a replica may have ended before it wrote this request down: killed, or asked to end while Redis did not take what it held. A
 * request that was under way is written down later than its client's end of it.
 */
function mayBeLost({ troubles }: World, { replica, endedAt }: Attempt): boolean {
  const vainEnds = replica.terminatedAt.filter((at) =>
    troubles.redis.touch(at - WRITTEN_AGAIN_MS, at + AFTERMATH_MS),
  );
  const isAtRisk = (end: number, latest: number): boolean => {
    const redisFailedAt = troubles.redis.beginOfLast(latest, WRITTEN_AGAIN_MS) ?? end;
    return endedAt <= latest && endedAt >= Math.min(redisFailedAt, end) - UNWRITTEN_MS;
  };
  return (
    replica.killedAt.some((at) => isAtRisk(at, at)) || vainEnds.some((at) => isAtRisk(at, at + AFTERMATH_MS))
  );
}

/** Without requests, nothing is held any more. */
async function leaks({ world: { replicas }, report }: Round): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const [index, replica] of replicas.entries()) {
    const { opsUrl, workers } = replica;
    for (const name of LOADS) {
      await until(async () => (await metric(opsUrl, name)) === 0).catch(() => {});
      const value = await metric(opsUrl, name);
      if (value !== 0) faults.push(`${name} is ${value} without any request`);
    }
    const memory = (await metric(opsUrl, 'process_resident_memory_bytes')) / workers;
    if (memory > MOST_MEMORY_BYTES) faults.push(`a process of a replica holds ${memory} bytes`);
    await until(async () => !((await replica.openFiles()) > MOST_OPEN_FILES), { timeoutMs: 20_000 }).catch(
      () => {},
    );
    const files = await replica.openFiles();
    if (files > MOST_OPEN_FILES) faults.push(`a process of a replica holds ${files} open files and sockets`);
    report(`replica ${index}: ${Math.round(memory / 2 ** 20)} MiB a process, at most ${files} open files`);
  }
  return faults;
}

function some(attempts: readonly Attempt[], what: string): readonly string[] {
  if (attempts.length === 0) return [];
  const shown = attempts
    .slice(0, SHOWN)
    .map(
      ({ end, status, startedAt, endedAt }) =>
        `${end} ${status} from ${Math.round(startedAt)} to ${Math.round(endedAt)}`,
    );
  return [`${attempts.length} requests ${what}: ${shown.join('; ')}`];
}
