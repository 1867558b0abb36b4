/** The parts of a gateway that may be degraded. */
export const DEGRADABLE = ['postgres', 'redis', 'limiter', 'usage', 'backend'] as const;

export type Degradable = (typeof DEGRADABLE)[number];

/** For operators: which replicas are live, and whether the stores and the backend respond. Holds no credential. */
export interface SystemReport {
  readonly atMs: number;
  readonly version: string;
  /** Empty if nothing is degraded. */
  readonly degraded: readonly Degradable[];
  /** This replica first, then the others by their last heartbeat, newest first. Only this one while Redis is unavailable. */
  readonly replicas: readonly ReplicaStatus[];
  /** The number of all live replicas, listed or not; undefined if it is unknown. */
  readonly liveReplicas: number | undefined;
  readonly postgres: PostgresStatus;
  /** Undefined if the process counts by itself, without Redis. */
  readonly redis: RedisStatus | undefined;
  readonly usage: UsageStatus;
  /** Null if there is none: the gateway only decides. */
  readonly backend: (Reachability & { readonly address: string }) | null;
}

/** A process that serves requests. Fields that a replica of an older version does not send are undefined. */
export interface ReplicaStatus {
  readonly replicaId: string;
  /** The replica that made this report. */
  readonly isThis: boolean;
  readonly lastSeenAtMs: number;
  readonly startedAtMs: number | undefined;
  readonly version: string | undefined;
  readonly host: string | undefined;
  readonly pid: number | undefined;
  /** `WORKERS`: the number of replicas on its machine that share its ports. */
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
  /** The names of migrations; undefined if Postgres did not respond. */
  readonly migrations:
    | { readonly applied: readonly string[]; readonly pending: readonly string[] }
    | undefined;
}

export interface RedisStatus extends Reachability {
  readonly mode: 'single' | 'sentinel' | 'cluster';
  /** With a cluster, its masters; empty if they did not respond. */
  readonly servers: readonly RedisServerStatus[];
}

interface RedisServerStatus {
  /** Host and port. */
  readonly address: string;
  readonly version: string;
  readonly role: string;
  /** Empty if the server does not report it. */
  readonly evictionPolicy: string;
  readonly isAppendOnly: boolean;
}

/** The transfer of usage from the live counts to the history. */
export interface UsageStatus {
  readonly flushIntervalMs: number;
  /** The time of the oldest counts not yet moved; null if there are none, undefined if it is unknown. */
  readonly oldestPendingAtMs: number | null | undefined;
  /** When this replica last moved all counts that were due; undefined before the first time. */
  readonly lastFlushAtMs: number | undefined;
}

/** The source of the report. */
export interface SystemStatus {
  /** Queries the stores now. Concurrent calls share the result. Does not reject if a store does not respond. */
  read(): Promise<SystemReport>;
}
