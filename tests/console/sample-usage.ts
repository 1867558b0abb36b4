import { Client } from 'pg';

/** A key that is given a past. */
export interface SampleKey {
  readonly id: string;
  readonly planId: string;
  /** In its busiest hour. */
  readonly requests: number;
  /** Shares of all its requests. */
  readonly limited: number;
  readonly failed: number;
}

const DAYS = 14;
const ENDPOINTS = [
  'GET /v1/orders/{id}',
  'GET /v1/products',
  'POST /v1/search/products',
  'GET /v1/orders',
] as const;
const CUSTOMERS = ['north-store', 'city-books', 'harbour-cafe', 'anonymous'] as const;

/** Writes two weeks of usage up to the last full hour, as the gateway would have: more by day than by night, less at weekends. */
export async function writeSampleUsage(databaseUrl: string, keys: readonly SampleKey[]): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    for (const key of keys) await writeHours(client, key);
    await client.query(NAMED_DAYS('usage_endpoint_days'), [ENDPOINTS]);
    await client.query(NAMED_DAYS('usage_customer_days'), [CUSTOMERS]);
  } finally {
    await client.end();
  }
}

async function writeHours(
  client: Client,
  { id, planId, requests, limited, failed }: SampleKey,
): Promise<void> {
  await client.query(
    `INSERT INTO usage_hours (key_id, hour, plan_id, requests, successful, forwarded, forwarded_us, rate_limited,
       client_errors, server_errors, bytes_in, bytes_out)
     SELECT $1::text, hour, $2::text, n, n - round(n * $4::float8) - round(n * $5::float8), n - round(n * $4::float8),
       (n - round(n * $4::float8)) * (24000 + 9000 * sin(extract(epoch FROM hour) / 7000)), round(n * $4::float8),
       round(n * $4::float8) + ceil(n * $5::float8 / 2), floor(n * $5::float8 / 2), n * 310, n * 2400
     FROM (
       SELECT hour, greatest(1, round($3::float8
         * (0.55 - 0.45 * cos((extract(hour FROM hour) - 2) * pi() / 12))
         * (0.9 + 0.2 * abs(sin(extract(epoch FROM hour) / 3600 * 1.7 + length($1::text) + ascii(right($1::text, 1)))))))::bigint AS n
       FROM generate_series(date_trunc('hour', now()) - ($6::int * interval '1 day'),
         date_trunc('hour', now()) - interval '1 hour', interval '1 hour') AS hour
     ) AS hours
     ON CONFLICT DO NOTHING`,
    [id, planId, requests, limited, failed, DAYS],
  );
}

const NAMED_DAYS = (table: 'usage_endpoint_days' | 'usage_customer_days') => `
  INSERT INTO ${table} (key_id, day, plan_id, name, requests, successful, forwarded, forwarded_us, rate_limited,
    client_errors, server_errors)
  SELECT key_id, (hour AT TIME ZONE 'UTC')::date, plan_id, name, sum(requests / (3 * place)), sum(successful / (3 * place)),
    sum(forwarded / (3 * place)), sum(forwarded_us / (3 * place)), sum(rate_limited / (3 * place)),
    sum(client_errors / (3 * place)), sum(server_errors / (3 * place))
  FROM usage_hours, unnest($1::text[]) WITH ORDINALITY AS named (name, place)
  GROUP BY 1, 2, 3, 4
  ON CONFLICT DO NOTHING`;
