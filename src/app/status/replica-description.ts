import { hostname } from 'node:os';
import { DEGRADABLE, type Degradable, type ReplicaStatus } from '../../management/system/system-report.ts';

/** The content of a replica's heartbeat. */
export interface ReplicaDescription {
  readonly version: string;
  readonly host: string;
  readonly pid: number;
  readonly workers: number;
  readonly startedAtMs: number;
  readonly degraded: readonly Degradable[];
}

/** The part of the heartbeat that does not change while the replica runs. */
export function describeProcess(
  version: string,
  workers: number,
  startedAtMs: number,
): Omit<ReplicaDescription, 'degraded'> {
  return { version, host: hostname(), pid: process.pid, workers, startedAtMs };
}

/** Reads the heartbeat of another replica. Its version may differ: unknown fields are ignored, missing ones are undefined. */
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
  // 8.64e15 is the last instant of a Date.
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 8.64e15
    ? value
    : undefined;
}
