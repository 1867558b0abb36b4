import type { Limit, Size } from './size-installation.ts';

/** One part of a size, for people. */
export interface SizeLine {
  readonly what: string;
  readonly size: string;
}

/** A size as lines, in the order of gateway, Redis, Postgres. */
export function sizeLines(size: Omit<Size, 'limits'>): readonly SizeLine[] {
  const masters = size.redisMasters === 1 ? 'one server' : `a cluster of ${size.redisMasters} masters`;
  return [
    { what: 'replicas', size: `${size.replicas}, each at ${short(size.cpuPercent)} % of one core` },
    { what: 'cores of all replicas', size: short(size.cores) },
    { what: 'memory of a replica', size: bytes(size.memoryBytesPerReplica) },
    { what: 'Redis', size: masters },
    { what: 'cores of Redis', size: short(size.redisCores) },
    { what: 'memory of Redis', size: bytes(size.redisMemoryBytes) },
    { what: 'disk of Postgres', size: bytes(size.postgresDiskBytes) },
    { what: 'rows of usage a second', size: short(size.postgresRowsPerSecond) },
    { what: 'IOPS of Postgres', size: `at most ${short(size.postgresIops)}` },
    {
      what: 'connections to Postgres',
      size: `at most ${size.postgresConnections}, ${short(size.postgresConnectionsIdle)} without requests`,
    },
    { what: 'usage is in Postgres after', size: `${short(size.usageLagSeconds)} s` },
  ];
}

/** A limit in one line. */
export function limitLine({ limit, usedPercent, remedy }: Limit): string {
  return `${`${Math.round(usedPercent)} %`.padStart(7)} of ${limit}. ${remedy}`;
}

/** Two digits that count. */
function short(value: number): string {
  const rounded = value < 100 ? Number(value.toPrecision(2)) : Math.round(value);
  return rounded.toLocaleString('en').replaceAll(',', ' ');
}

function bytes(value: number): string {
  if (value < 1e9) return `${short(Math.ceil(value / 1e6))} MB`;
  if (value < 1e12) return `${short(value / 1e9)} GB`;
  return `${short(value / 1e12)} TB`;
}
