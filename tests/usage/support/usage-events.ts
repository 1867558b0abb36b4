import { sql } from 'kysely';
import type { RecordsDatabase } from '../../../src/storage/postgres/records-database.ts';
import type { SeriesCounts } from '../../../src/usage/series/series-store.ts';

/** Requests of one key in one hour, as the history keeps them by hour, by endpoint and by customer. */
export interface UsageEvents extends SeriesCounts {
  readonly keyId: string;
  /** The first instant of an hour of UTC. */
  readonly hourMs: number;
  /** '' = none applied. */
  readonly planId: string;
  readonly endpoint: string;
  readonly customerId: string;
}

/** Some requests; `fields` replace what a test cares about. */
export function usageEvents(
  fields: Partial<UsageEvents> & Pick<UsageEvents, 'keyId' | 'hourMs'>,
): UsageEvents {
  return {
    planId: 'default',
    endpoint: '/v1/orders',
    customerId: 'anonymous',
    requests: 10,
    successful: 7,
    forwarded: 8,
    forwardedUs: 80_400,
    rateLimited: 2,
    clientErrors: 2,
    serverErrors: 1,
    shadowLimited: 4,
    ...fields,
  };
}

const HOURS = { table: 'usage_hours', time: 'hour' };
const ENDPOINTS = { table: 'usage_endpoint_days', time: 'day' };
const CUSTOMERS = { table: 'usage_customer_days', time: 'day' };

/** Adds requests to the tables of usage over time; the hours of single keys before `hoursSinceMs` are gone already. */
export async function storeUsage(
  db: RecordsDatabase,
  events: readonly UsageEvents[],
  hoursSinceMs?: number,
): Promise<void> {
  await add(db, HOURS, events, undefined);
  await add(db, ENDPOINTS, events, 'endpoint');
  await add(db, CUSTOMERS, events, 'customerId');
  if (hoursSinceMs === undefined) return;
  // As with the partition of a month: no trigger sees them go.
  await sql`DELETE FROM usage_hours WHERE hour < ${new Date(hoursSinceMs).toISOString()}::timestamptz`.execute(
    db,
  );
}

async function add(
  db: RecordsDatabase,
  { table, time }: typeof HOURS,
  events: readonly UsageEvents[],
  name: 'endpoint' | 'customerId' | undefined,
): Promise<void> {
  if (events.length === 0) return;
  const each = <Field extends keyof UsageEvents>(field: Field) => events.map((event) => event[field]);
  const instants = events.map(({ hourMs }) => new Date(hourMs).toISOString());
  const named = name === undefined ? sql`` : sql`name,`;
  const names = name === undefined ? sql`` : sql`${each(name)}::text[],`;
  const at = time === 'hour' ? sql`at::timestamptz` : sql`(at::timestamptz AT TIME ZONE 'UTC')::date`;
  await sql`
    INSERT INTO ${sql.table(table)} AS stored (key_id, ${sql.ref(time)}, plan_id, ${named}
      requests, successful, forwarded, forwarded_us, rate_limited, client_errors, server_errors, shadow_limited)
    SELECT key_id, ${at}, plan_id, ${named} sum(requests), sum(successful), sum(forwarded), sum(forwarded_us),
      sum(rate_limited), sum(client_errors), sum(server_errors), sum(shadow_limited)
    FROM unnest(
      ${each('keyId')}::text[], ${instants}::text[], ${each('planId')}::text[], ${names}
      ${each('requests')}::bigint[], ${each('successful')}::bigint[], ${each('forwarded')}::bigint[],
      ${each('forwardedUs')}::bigint[], ${each('rateLimited')}::bigint[], ${each('clientErrors')}::bigint[],
      ${each('serverErrors')}::bigint[], ${each('shadowLimited')}::bigint[]
    ) AS event (key_id, at, plan_id, ${named}
      requests, successful, forwarded, forwarded_us, rate_limited, client_errors, server_errors, shadow_limited)
    GROUP BY ${name === undefined ? sql`1, 2, 3` : sql`1, 2, 3, 4`}
    ON CONFLICT (key_id, ${named} ${sql.ref(time)}, plan_id) DO UPDATE SET
      requests = stored.requests + excluded.requests, successful = stored.successful + excluded.successful,
      forwarded = stored.forwarded + excluded.forwarded, forwarded_us = stored.forwarded_us + excluded.forwarded_us,
      rate_limited = stored.rate_limited + excluded.rate_limited,
      client_errors = stored.client_errors + excluded.client_errors,
      server_errors = stored.server_errors + excluded.server_errors,
      shadow_limited = stored.shadow_limited + excluded.shadow_limited`.execute(db);
}
