import { hostname } from 'node:os';
import { DEGRADABLE, type Degradable, type ReplicaStatus } from '../../management/system/system-report.ts';

/** What each heartbeat of a replica carries. */
export interface ReplicaDescription {
  readonly version: string;
  readonly host: string;
  readonly pid: number;
  readonly workers: number;
  readonly startedAtMs: number;
  readonly degraded: readonly Degradable[];
}

/** What does not change while the replica runs. */
export function describeProcess(
  version: string,
  workers: number,
  startedAtMs: number,
): Omit<ReplicaDescription, 'degraded'> {
  return { version, host: hostname(), pid: process.pid, workers, startedAtMs };
}

/** Reads the heartbeat of another replica, which may be of another version: unknown fields are ignored, and missing ones stay undefined. */
export function readDescription(
  said: unknown,
): Pick<ReplicaStatus, 'version' | 'host' | 'pid' | 'workers' | 'startedAtMs' | 'degraded'> {
  const { version, host, pid, workers, startedAtMs, degraded } = (
    typeof said === 'object' && said !== null ? said : {}
  ) as Readonly<Record<keyof ReplicaDescription, unknown>>;
  return {
    version: typeof version === 'string' ? version : undefined,
    host: typeof host === 'string' ? host : undefined,
    pid: countOf(pid),
    workers: countOf(workers),
    startedAtMs: countOf(startedAtMs),
    degraded: Array.isArray(degraded) ? DEGRADABLE.filter((name) => degraded.includes(name)) : undefined,
  };
}

function countOf(value: unknown): number | undefined {
  // Beyond it there is no Date.
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 8.64e15
    ? value
    : undefined;
}
