import { describe, expect, it } from '@jest/globals';
import { Pool, type QueryResult } from 'pg';
import { withUnavailability } from '../../src/storage/postgres/unavailability.ts';
import { createTestDatabase } from '../support/stores.ts';

describe('the rows of a query', () => {
  it('are not in the result that the client keeps in the old generation', async () => {
    const database = await createTestDatabase();
    const pool = new Pool({ connectionString: database.url });
    const kept: QueryResult[] = [];
    pool.on('connect', (client) => {
      const query = client.query.bind(client) as (text: string, values: unknown[]) => Promise<QueryResult>;
      Object.assign(client, {
        query: async (text: string, values: unknown[]) => {
          const result = await query(text, values);
          kept.push(result);
          return result;
        },
      });
    });
    const client = await withUnavailability(pool).connect();
    const read = await client.query('SELECT n FROM generate_series(1, $1::int) AS n', [2]);
    client.release();
    expect(read).toMatchObject({ command: 'SELECT', rowCount: 2, rows: [{ n: 1 }, { n: 2 }] });
    expect(kept.map(({ rows }) => rows)).toEqual([[]]);
    await pool.end();
    await database.drop();
  });
});
