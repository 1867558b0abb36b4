import type { Client } from 'pg';
import { onRedis } from '../../support/on-redis.ts';
import type { TollgateCandidate } from '../setup/tollgate.ts';

/** Commands that a Redis server has run, those of scripts included. */
export function redisCommands(url: string): Promise<number> {
  return onRedis(url, async (redis) =>
    [...(await redis.info('commandstats')).matchAll(/:calls=(\d+)/g)].reduce(
      (sum, [, calls]) => sum + Number(calls),
      0,
    ),
  );
}

/** A field of `INFO` that is a number. */
export function redisInfo(url: string, field: string): Promise<number> {
  return onRedis(url, async (redis) =>
    Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(await redis.info())?.[1]),
  );
}

/** The first number that the statement gives. */
export async function numberOf(postgres: Client, statement: string): Promise<number> {
  const { rows } = await postgres.query<Record<string, unknown>>(statement);
  return Number(Object.values(rows[0] ?? {})[0]);
}

/** Transactions of the database so far: each query of a request is one. Those of the last second may be missing. */
export function transactions(postgres: Client): Promise<number> {
  return numberOf(postgres, "SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'");
}

/** Connections of gateways to Postgres. */
export function gatewayConnections(postgres: Client): Promise<number> {
  return numberOf(
    postgres,
    "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
  );
}

/** The sum of a metric over all labels that begin with `prefix`, such as `tollgate_x{result="hit"`. */
export async function metricOf({ opsPort }: TollgateCandidate, prefix: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text();
  return text
    .split('\n')
    .filter((line) => line.startsWith(prefix))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}
