/** The parts of a gateway that may be degraded. */
export const DEGRADABLE = ['postgres', 'redis', 'limiter', 'usage', 'backend'] as const;

export type Degradable = (typeof DEGRADABLE)[number];

/** What an operator asks first: which replicas live, and whether what they need responds. Holds no credential. */
export interface SystemReport {
  readonly atMs: number;
  readonly version: string;
  /** Empty while all is well. */
  readonly degraded: readonly Degradable[];
  /** This one first, then those that were seen last. While Redis is unavailable only this one. */
  readonly replicas: readonly ReplicaStatus[];
  /** All live replicas, listed or not; undefined while that can't be known. */
  readonly liveReplicas: number | undefined;
  readonly postgres: PostgresStatus;
  /** Undefined: the process counts by itself. */
  readonly redis: RedisStatus | undefined;
  readonly usage: UsageStatus;
  readonly backend: Reachability & { readonly address: string };
}

/** A process that serves requests. What a replica of the version before does not say is undefined. */
export interface ReplicaStatus {
  readonly replicaId: string;
  /** The replica that made this report. */
  readonly isThis: boolean;
  readonly lastSeenAtMs: number;
  readonly startedAtMs: number | undefined;
  readonly version: string | undefined;
  readonly host: string | undefined;
  readonly pid: number | undefined;
  /** `WORKERS`: the number of replicas that share its ports. */
  readonly workers: number | undefined;
  readonly degraded: readonly Degradable[] | undefined;
}

/** Whether something responds, and how fast. */
export interface Reachability {
  readonly isReachable: boolean;
  /** Undefined when it did not respond. */
  readonly latencyMs: number | undefined;
  /** Why it is unhealthy, without credentials; undefined when it is healthy. */
  readonly fault: string | undefined;
}

export interface PostgresStatus extends Reachability {
  readonly isEmbedded: boolean;
  readonly version: string | undefined;
  /** By name; undefined when it did not respond. */
  readonly migrations:
    | { readonly applied: readonly string[]; readonly pending: readonly string[] }
    | undefined;
}

export interface RedisStatus extends Reachability {
  readonly mode: 'single' | 'sentinel' | 'cluster';
  /** Of a cluster its masters; empty when they did not respond. */
  readonly servers: readonly RedisServerStatus[];
}

interface RedisServerStatus {
  /** Host and port. */
  readonly address: string;
  readonly version: string;
  readonly role: string;
  /** Empty where the server does not say. */
  readonly evictionPolicy: string;
  readonly isAppendOnly: boolean;
}

/** How usage gets from the live counts to the history. */
export interface UsageStatus {
  readonly flushIntervalMs: number;
  /** Of the oldest counts that wait; null when none wait, undefined when that can't be known. */
  readonly oldestPendingAtMs: number | null | undefined;
  /** When this replica last moved all that was due; undefined before the first time. */
  readonly lastFlushAtMs: number | undefined;
}

/** Where the report comes from. */
export interface SystemStatus {
  /** Asks the stores now. Calls that come while one runs share it. Never rejects because something does not respond. */
  read(): Promise<SystemReport>;
}
