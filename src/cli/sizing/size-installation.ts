import { distinctNames } from './distinct-names.ts';
import type { ScaleConstants } from './scale-constants.ts';

/** What an installation is to carry. */
export interface Demand {
  /** Requests a second in the busiest hour. */
  readonly rps: number;
  readonly keys: number;
  /** Of the keys, how many are ever used. */
  readonly activeKeys: number;
  /** Customers and endpoints that a key is used with. */
  readonly customers: number;
  readonly endpoints: number;
  /** How long usage by hour and by day is kept. */
  readonly months: number;
  readonly dailyMonths: number;
  /** Limits that a request counts in. */
  readonly windows: number;
  /** Undefined: as many as the requests need. */
  readonly replicas?: number;
}

/** What it takes. Bytes are those to have, with room to spare. */
export interface Size {
  readonly replicas: number;
  /** Of all replicas, at `rps`. */
  readonly cores: number;
  /** Of the CPU of the replicas, at `rps`. */
  readonly cpuPercent: number;
  readonly memoryBytesPerReplica: number;
  readonly redisMasters: number;
  /** Of all masters, at `rps`. */
  readonly redisCores: number;
  /** Of all masters. */
  readonly redisMemoryBytes: number;
  readonly postgresDiskBytes: number;
  readonly postgresRowsPerSecond: number;
  /** At most: each row that is written is on another page, which is read and written. */
  readonly postgresIops: number;
  /** At most, and those that are kept without requests. */
  readonly postgresConnections: number;
  readonly postgresConnectionsIdle: number;
  /** How long usage waits until it is in Postgres. */
  readonly usageLagSeconds: number;
  /** The nearest first. */
  readonly limits: readonly Limit[];
}

/** A limit that growth meets. */
export interface Limit {
  readonly limit: string;
  /** How much of it is used; above 100 it must be dealt with. */
  readonly usedPercent: number;
  readonly remedy: string;
}

/** Of a core, a disk or memory that is planned with: the rest is for peaks, and for what one fault moves to the others. */
const PLANNED_CPU = 0.6;
const PLANNED_REDIS_CORE = 0.7;
const PLANNED_SPACE = 0.7;
/** For a replica that is replaced. */
const SPARE = 1.2;
/** The append-only file is rewritten by a copy of the process. */
const AOF_REWRITE = 2;
const CACHED_KEYS = 100_000;
const MOST_ENDPOINTS = 500;
const MOST_CUSTOMERS = 1000;
const HOURS_A_MONTH = 730.5;
const HOUR_SECONDS = 3600;
const DAY_SECONDS = 86_400;
const DAYS_A_MONTH = HOURS_A_MONTH / 24;
/** `POSTGRES_CONNECTIONS` of a process. */
const CONNECTIONS_AT_MOST = 14;
const USAGE_FLUSH_SECONDS = 10;
const LONGEST_FLUSH_SECONDS = 50;
/** Rows a second that one Postgres writes in moves of usage (docs/usage.md, 1300 keys of 17 rows each). */
const POSTGRES_ROWS_PER_SECOND = 20_000;
/** The largest installation that should share one Postgres (docs/runbook.md). */
const CELL = { replicas: 100, masters: 25 };
const MANY_CONNECTIONS = 400;

/** Plans an installation with the measured constants. Pure: the same demand and constants give the same size. */
export function sizeInstallation(demand: Demand, constants: ScaleConstants): Size {
  const cores = (demand.rps * constants.cpuMicrosecondsPerRequest) / 1e6;
  const replicas = demand.replicas ?? Math.max(2, Math.ceil((cores / PLANNED_CPU) * SPARE));
  const idleCommands = replicas * constants.redisCommandsPerSecondIdlePerReplica;
  const redisCores = ((demand.rps + idleCommands) * constants.redisMicrosecondsPerRequest) / 1e6;
  const busyMasters = Math.ceil(redisCores / PLANNED_REDIS_CORE);
  const keysOfHour = distinctNames(demand.rps * HOUR_SECONDS, demand.activeKeys, 1);
  const windows = distinctNames(demand.rps * DAY_SECONDS, demand.activeKeys, 1) * demand.windows;
  const rows = rowsOfMove(demand, USAGE_FLUSH_SECONDS) / USAGE_FLUSH_SECONDS;
  const size = {
    replicas,
    cores,
    cpuPercent: (100 * cores) / replicas,
    memoryBytesPerReplica: Math.ceil(
      (constants.residentBytesIdle +
        Math.min(keysOfHour, CACHED_KEYS) * constants.residentBytesPerCachedKey) /
        PLANNED_SPACE,
    ),
    redisMasters: busyMasters === 1 ? 1 : Math.max(3, busyMasters >= 5 ? busyMasters + 1 : busyMasters),
    redisCores,
    redisMemoryBytes: Math.ceil(
      (windows * constants.redisBytesPerActiveKeyWindow * AOF_REWRITE) / PLANNED_SPACE,
    ),
    postgresDiskBytes: Math.ceil(
      (demand.keys * constants.postgresBytesPerKey + usageRows(demand) * constants.postgresBytesPerUsageRow) /
        PLANNED_SPACE,
    ),
    postgresRowsPerSecond: rows,
    postgresIops: 2 * Math.min(rows, POSTGRES_ROWS_PER_SECOND),
    postgresConnections: replicas * CONNECTIONS_AT_MOST,
    postgresConnectionsIdle: replicas * constants.postgresConnectionsPerReplica,
    usageLagSeconds: lagSeconds(demand),
  };
  return { ...size, limits: limitsOf(keysOfHour, size) };
}

/** Rows of usage in Postgres when the oldest month is about to be dropped: a month is kept until all of it is too old. */
function usageRows(demand: Demand): number {
  const { rps, keys, activeKeys, months, dailyMonths, endpoints, customers } = demand;
  const names = Math.min(endpoints, MOST_ENDPOINTS) + Math.min(customers, MOST_CUSTOMERS);
  const hours = distinctNames(rps * HOUR_SECONDS, activeKeys, 1) * (months + 1) * HOURS_A_MONTH;
  const keyDays = distinctNames(rps * DAY_SECONDS, activeKeys, 1) * (months + 1) * DAYS_A_MONTH;
  const nameDays = namesOf(demand, DAY_SECONDS) * (dailyMonths + 1) * DAYS_A_MONTH;
  return hours + keyDays + nameDays + keys * names;
}

/** Endpoints and customers of all keys that are used in this time, and that have rows. */
function namesOf({ rps, activeKeys, endpoints, customers }: Demand, seconds: number): number {
  const requests = rps * seconds;
  return (
    distinctNames(requests, activeKeys, Math.min(endpoints, MOST_ENDPOINTS)) +
    distinctNames(requests, activeKeys, Math.min(customers, MOST_CUSTOMERS))
  );
}

/** The rows of one move: of each key its totals, its hour and its day, and of each of its names the total and the day. */
function rowsOfMove(demand: Demand, seconds: number): number {
  return 3 * distinctNames(demand.rps * seconds, demand.activeKeys, 1) + 2 * namesOf(demand, seconds);
}

/** The interval of moves, or the longer one that lets Postgres write what has come in it: more requests of a key share their rows then. */
function lagSeconds(demand: Demand): number {
  let seconds = USAGE_FLUSH_SECONDS;
  for (let round = 0; round < 100; round += 1)
    seconds = Math.max(seconds, rowsOfMove(demand, seconds) / POSTGRES_ROWS_PER_SECOND);
  return seconds;
}

function limitsOf(keysOfHour: number, size: Omit<Size, 'limits'>): readonly Limit[] {
  const redisPercent =
    size.redisMasters === 1
      ? (100 * size.redisCores) / PLANNED_REDIS_CORE
      : (100 * size.redisMasters) / CELL.masters;
  const limits: readonly Limit[] = [
    { ...ofRedis(size.redisMasters), usedPercent: redisPercent },
    {
      limit: `CPU of ${size.replicas} replicas`,
      usedPercent: size.cpuPercent / PLANNED_CPU,
      remedy: 'More replicas: they share nothing but Redis and Postgres.',
    },
    {
      limit: `${MANY_CONNECTIONS} connections to Postgres`,
      usedPercent: (100 * size.postgresConnections) / MANY_CONNECTIONS,
      remedy: 'PgBouncer in transaction mode, with the settings of the runbook.',
    },
    {
      limit: `${POSTGRES_ROWS_PER_SECOND} rows of usage a second`,
      usedPercent: (100 * size.postgresRowsPerSecond) / POSTGRES_ROWS_PER_SECOND,
      remedy: `Usage is later in Postgres, no request waits. USAGE_FLUSH_MS up to ${LONGEST_FLUSH_SECONDS}000; a read replica does not help, because these are writes.`,
    },
    {
      limit: `${CACHED_KEYS} keys in the memory of a replica`,
      usedPercent: (100 * keysOfHour) / CACHED_KEYS,
      remedy: 'Nothing fails: keys that are used seldom are read from Postgres.',
    },
    {
      limit: `${CELL.replicas} replicas on one Postgres`,
      usedPercent: (100 * size.replicas) / CELL.replicas,
      remedy: 'Cells with stores of their own, each for some of the consumers.',
    },
  ];
  return limits.toSorted((one, other) => other.usedPercent - one.usedPercent);
}

function ofRedis(masters: number): Pick<Limit, 'limit' | 'remedy'> {
  if (masters === 1)
    return {
      limit: 'one Redis server',
      remedy: 'REDIS_MODE=cluster. One key stays on one master.',
    };
  return {
    limit: `${CELL.masters} Redis masters`,
    remedy: 'Cells with stores of their own, each for some of the consumers.',
  };
}
