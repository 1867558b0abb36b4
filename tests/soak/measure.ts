import { readdir } from 'node:fs/promises';
import type { Redis } from 'ioredis';
import { sql } from 'kysely';
import { residentBytes } from '../bench/measure/process-counts.ts';
import type { World } from '../chaos/world.ts';
import type { Series } from './flatness.ts';

/** A table has a page or two even when it is empty. */
const LEAST_ROWS = 2000;

/** A figure of now. */
export interface Figure extends Pick<Series, 'name' | 'unit'> {
  readonly value: number;
}

/** Measures what must not grow: memory and open files of the processes, memory and clients of Redis, connections of Postgres and its disk a row. */
export async function measure({ replicas, db }: World, redis: Redis): Promise<readonly Figure[]> {
  const processes = replicas.flatMap((replica, number) =>
    replica.pids().map((pid, worker) => ({ name: `replica ${number}.${worker}`, pid })),
  );
  const ofProcesses = processes.map(
    async ({ name, pid }): Promise<readonly Figure[]> => [
      { name: `${name}, memory`, unit: 'MB', value: residentBytes([pid]) / 1e6 },
      { name: `${name}, open files`, unit: 'count', value: (await readdir(`/proc/${pid}/fd`)).length },
    ],
  );
  const [memory, clients] = await Promise.all([redis.info('memory'), redis.info('clients')]);
  const ofRedis: readonly Figure[] = [
    { name: 'Redis, memory', unit: 'MB', value: Number(/used_memory:(\d+)/.exec(memory)?.[1]) / 1e6 },
    {
      name: 'Redis, connections',
      unit: 'count',
      value: Number(/connected_clients:(\d+)/.exec(clients)?.[1]),
    },
  ];
  const connections = await sql<{ readonly count: number }>`
    SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database()`.execute(db);
  return [
    ...(await Promise.all(ofProcesses)).flat(),
    ...ofRedis,
    { name: 'Postgres, connections', unit: 'count', value: connections.rows[0]?.count ?? Number.NaN },
    ...(await tableSizes(db)),
  ];
}

/** Of each table with its indexes, by the rows that are in it: usage and audit log grow as they should, dead rows must not. */
async function tableSizes(db: World['db']): Promise<readonly Figure[]> {
  const tables = await sql<{ readonly name: string; readonly bytes: number }>`
    SELECT relid::regclass::text AS name, pg_total_relation_size(relid)::float AS bytes
    FROM pg_stat_user_tables ORDER BY 1`.execute(db);
  const figures: Figure[] = [];
  for (const { name, bytes } of tables.rows) {
    const counted = await sql<{ readonly rows: number }>`
      SELECT count(*)::int AS rows FROM ${sql.table(name)}`.execute(db);
    const rows = Math.max(counted.rows[0]?.rows ?? 0, LEAST_ROWS);
    figures.push({ name: `table ${name}`, unit: 'bytes a row', value: bytes / rows });
  }
  return figures;
}
