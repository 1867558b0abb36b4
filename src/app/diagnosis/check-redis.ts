import { gatewayVersion } from '../../platform/gateway-version.ts';
import type { Platform } from '../../platform/platform.ts';
import type { Settings } from '../../settings/settings.ts';
import { failureReason, isPassing } from '../../storage/failure-reason.ts';
import { inspectRedis, type RedisInspection } from '../../storage/redis/inspect-redis.ts';
import { type InspectedServer, serverFaults } from '../../storage/redis/redis-health.ts';
import { readDescription } from '../status/replica-description.ts';
import { clockFindings } from './clock-findings.ts';
import { type Finding, findingsOf } from './finding.ts';

const { ok, warning, fault, unavailable } = findingsOf('redis');
const ofReplicas = findingsOf('replicas');
const DEADLINE_MS = 5000;
/** Slow, because each proxied request waits for Redis once. */
const SLOW_MS = 5;
/** The part of `maxmemory` above which there is a warning, as with the alert TollgateRedisMemory. */
const MUCH_MEMORY = 0.8;

/** Checks Redis and the replicas that are registered there, without registering one. Never rejects. */
export async function checkRedis(settings: Settings, platform: Platform): Promise<readonly Finding[]> {
  const { redisUrl, redisMode: mode, redisTimeoutMs: timeoutMs } = settings;
  if (redisUrl === null) return [ok('Requests are counted in the process: REDIS_URL is not set.')];
  try {
    const found = await inspectRedis(
      { address: redisUrl, mode, timeoutMs },
      { ...platform, deadlineMs: DEADLINE_MS },
    );
    return [
      ...found.servers.flatMap((server) => serverFindings(server)),
      latencyFinding(found, settings),
      ...clockFindings('redis', found.clockAheadMs),
      ...replicaFindings(found),
    ];
  } catch (error) {
    const reason = failureReason(error);
    return [
      isPassing(error)
        ? unavailable(`Redis does not respond: ${reason}.`, 'Start it, or correct REDIS_URL and REDIS_MODE.')
        : fault(
            `Redis can not be used: ${reason}.`,
            'Correct REDIS_URL: user, password, database, TLS; and REDIS_MODE.',
          ),
    ];
  }
}

function serverFindings(server: InspectedServer): readonly Finding[] {
  const { address, version, role, isAppendOnly } = server;
  const faults = serverFaults(server);
  return [
    ...(faults.length === 0 ? [ok(`Redis ${version} at ${address} evicts no keys.`)] : []),
    ...faults.map((sentence) =>
      fault(
        `${address}: ${sentence}.`,
        'Use another server, or change its configuration; docs/runbook.md has the commands.',
      ),
    ),
    ...(role === 'slave'
      ? [
          fault(
            `${address} is a replica, which takes no writes.`,
            'Name the master, or the sentinels with REDIS_MODE=sentinel.',
          ),
        ]
      : []),
    ...writeFindings(server),
    ...(isAppendOnly
      ? [ok(`${address} keeps an append-only file.`)]
      : [
          warning(
            `${address} keeps no append-only file: with a restart it forgets open windows, and usage that is not in Postgres yet.`,
            'Set appendonly yes, at once by redis-cli config set, and in its configuration.',
          ),
        ]),
  ];
}

/** Whether the server takes writes, and how long it will. */
function writeFindings({ address, rejection, memoryUsed }: InspectedServer): readonly Finding[] {
  if (rejection !== undefined)
    return [
      fault(
        `${address} rejects commands: ${rejection}.`,
        'Make room on its disk; docs/runbook.md has a section on full disks.',
      ),
    ];
  const percent = Math.round(memoryUsed * 100);
  const remedy = 'Raise its maxmemory; docs/runbook.md has a section on TollgateRedisMemory.';
  if (memoryUsed >= 1)
    return [fault(`${address} has no memory left: it uses ${percent} % of its maxmemory.`, remedy)];
  if (memoryUsed > MUCH_MEMORY) return [warning(`${address} uses ${percent} % of its maxmemory.`, remedy)];
  return [];
}

function latencyFinding({ latencyMs }: RedisInspection, { redisTimeoutMs }: Settings): Finding {
  const shown = Math.round(latencyMs * 10) / 10;
  const remedy = 'Run it near the gateway, in the same zone: each request waits for it.';
  if (latencyMs > redisTimeoutMs)
    return fault(`It responds in ${shown} ms, later than REDIS_TIMEOUT_MS (${redisTimeoutMs}).`, remedy);
  if (latencyMs > SLOW_MS) return warning(`It responds in ${shown} ms.`, remedy);
  return ok(`It responds in ${shown} ms.`);
}

function replicaFindings({ replicas }: RedisInspection): readonly Finding[] {
  const described = replicas.map(({ description }) => readDescription(description));
  if (described.length === 0) return [ofReplicas.ok('No gateway runs with these settings at the moment.')];
  const own = gatewayVersion();
  const versions = [...new Set(described.map(({ version }) => version ?? '0.1.0 or older'))].toSorted();
  const count = described.length === 1 ? '1 replica runs' : `${described.length} replicas run`;
  const running = `${count}, of version ${versions.join(' and ')}`;
  const isSame = versions.length === 1 && versions[0] === own;
  return [
    isSame
      ? ofReplicas.ok(`${running}.`)
      : ofReplicas.warning(
          `${running}; this command is of version ${own}.`,
          'Go on with the upgrade until all are of one version: a mixture is meant for its duration only.',
        ),
    ...described.flatMap(({ host, pid, degraded = [] }) =>
      degraded.map((part) =>
        ofReplicas.warning(
          `The replica ${host}, process ${pid}, has had trouble with ${part} within the last seconds.`,
          part === 'postgres' || part === 'redis'
            ? 'Look at its log; /readyz of its OPS_PORT has the reason.'
            : 'Look at its log, which has the reason; docs/runbook.md has the lines.',
        ),
      ),
    ),
  ];
}
