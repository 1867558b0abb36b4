import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { openRecords, type Records } from '../../src/storage/postgres/open-records.ts';
import { createEmbeddedRecords, createPostgresRecords, MIGRATIONS } from '../support/records.ts';
import { createTestDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { waitingForLocks } from '../support/waiting-for-locks.ts';

const KEY_DAYS = '0018_usage_key_days.sql';
const KEY_DAY_QUARTERS = '0019_usage_key_day_quarters.sql';

async function withRecords(directory: string, replicas: number, run: (all: Records[]) => Promise<void>) {
  const database = await createTestDatabase();
  const all = Array.from({ length: replicas }, () =>
    openRecords({
      url: database.url,
      maxConnections: 2,
      migrationsDirectory: directory,
      defaultPlanId: null,
      chainSecrets: null,
      onIdleError: () => {},
    }),
  );
  try {
    await run(all);
  } finally {
    await Promise.all(all.map((records) => records.close()));
    await database.drop();
  }
}

describe('migrations', () => {
  it('are applied once by replicas that start at the same time', async () => {
    await withRecords(MIGRATIONS, 4, async (replicas) => {
      const applied = await Promise.all(replicas.map((replica) => replica.migrate()));
      expect(applied.flat().filter((name) => name === '0001_records')).toHaveLength(1);
      expect(await replicas[0]?.pendingMigrations()).toEqual([]);
    });
  });

  it('leave nothing of the one that fails, and keep those before it', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-sql-'));
    await writeFile(join(directory, '0001_good.sql'), '-- a comment;\nCREATE TABLE good (id int);\n');
    await writeFile(
      join(directory, '0002_bad.sql'),
      "INSERT INTO good VALUES (1);\nSELECT 'no number'::int;\n",
    );
    await withRecords(directory, 1, async ([records]) => {
      await expect(records?.migrate()).rejects.toThrow('The migration 0002_bad failed.');
      expect(await records?.pendingMigrations()).toEqual(['0002_bad']);
      await writeFile(
        join(directory, '0002_bad.sql'),
        "INSERT INTO good\nVALUES (';'),\n  ('2');\n".replace("';'", '1'),
      );
      expect(await records?.migrate()).toEqual(['0002_bad']);
      const rows = records && (await sql`select id from good`.execute(records.db)).rows;
      expect(rows).toEqual([{ id: 1 }, { id: 2 }]);
    });
    await rm(directory, { recursive: true });
  });

  it('leave a database alone that a later version has migrated further', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-sql-'));
    await writeFile(join(directory, '0001_first.sql'), 'CREATE TABLE first (id int);\n');
    await writeFile(join(directory, '0002_later.sql'), 'CREATE TABLE later (id int);\n');
    await withRecords(directory, 1, async ([records]) => {
      await records?.migrate();
      await rm(join(directory, '0002_later.sql'));
      expect(await records?.migrate()).toEqual([]);
      expect(await records?.pendingMigrations()).toEqual([]);
    });
    await rm(directory, { recursive: true });
  });

  it('carry hours that the version before writes into the rows by plan', async () => {
    for (const create of [createPostgresRecords, createEmbeddedRecords]) {
      const { records, remove } = await create();
      try {
        await sql`INSERT INTO consumer_keys (id, name, created_at, updated_at, lookup)
          VALUES ('key_a', 'a', now(), now(), sha256('a'))`.execute(records.db);
        await sql`INSERT INTO usage_totals AS stored (key_id, last_batch, requests, successful, forwarded, forwarded_us)
          VALUES ('key_a', 7, 5, 4, 3, 2)
          ON CONFLICT (key_id) DO UPDATE SET last_batch = excluded.last_batch, requests = stored.requests + excluded.requests`.execute(
          records.db,
        );
        for (const requests of [5, 2]) {
          await sql`INSERT INTO usage_by_hour AS stored (key_id, hour, requests, successful, forwarded, forwarded_us)
            VALUES ('key_a', '2026-11-22T05:00:00Z', ${requests}, 1, 1, 1000)
            ON CONFLICT (key_id, hour) DO UPDATE SET requests = stored.requests + excluded.requests`.execute(
            records.db,
          );
        }
        const rows = await records.db
          .selectFrom('usage_hours')
          .select(['plan_id', 'hour', 'requests', 'successful', 'rate_limited'])
          .execute();
        const hour = new Date('2026-11-22T05:00:00Z');
        expect(rows).toEqual([{ plan_id: 'default', hour, requests: 7, successful: 1, rate_limited: 0 }]);
      } finally {
        await remove();
      }
    }
  });

  it('take the hours of the version before along, each in its month', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-sql-'));
    const copy = (name: string) => copyFile(join(MIGRATIONS, name), join(directory, name));
    await Promise.all(['0001_records.sql', '0002_usage.sql'].map(copy));
    await withRecords(directory, 1, async ([records]) => {
      if (records === undefined) throw new Error('no records');
      await records.migrate();
      await sql`INSERT INTO consumer_keys (id, name, created_at, updated_at, lookup)
        VALUES ('key_a', 'a', now(), now(), sha256('a'))`.execute(records.db);
      await sql`INSERT INTO usage_totals VALUES ('key_a', 3, 3, 3, 3, 7)`.execute(records.db);
      for (const hour of ['2026-09-30T23:00:00Z', '2026-10-01T00:00:00Z', '2026-11-22T05:00:00Z']) {
        await sql`INSERT INTO usage_by_hour VALUES ('key_a', ${hour}, 1, 1, 1, 1)`.execute(records.db);
      }
      await copy('0003_usage_by_shard.sql');
      await records.migrate();
      const { rows } =
        await sql`SELECT tableoid::regclass::text AS partition, sum(requests)::integer AS requests
        FROM usage_hours GROUP BY 1 ORDER BY 1`.execute(records.db);
      expect(rows).toEqual([
        { partition: 'usage_hours_2026_09', requests: 1 },
        { partition: 'usage_hours_2026_10', requests: 1 },
        { partition: 'usage_hours_2026_11', requests: 1 },
      ]);
    });
    await rm(directory, { recursive: true });
  });

  it('sum the hours by key, day and quarter, and those that the version before adds', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-sql-'));
    const before = (await readdir(MIGRATIONS)).filter((name) => name < '0018');
    await Promise.all(before.map((name) => copyFile(join(MIGRATIONS, name), join(directory, name))));
    await withRecords(directory, 1, async ([records]) => {
      if (records === undefined) throw new Error('no records');
      await records.migrate();
      const add = (hour: string, requests: number) => sql`
        INSERT INTO usage_hours AS stored (key_id, hour, plan_id, requests, successful, forwarded, forwarded_us)
        VALUES ('key_gone', ${hour}, 'gold', ${requests}, 1, 1, 1)
        ON CONFLICT (key_id, hour, plan_id) DO UPDATE SET requests = stored.requests + excluded.requests`;
      const days = async () =>
        (
          await sql`SELECT day::text, key_id, plan_id, requests FROM usage_key_days ORDER BY day`.execute(
            records.db,
          )
        ).rows;
      const row = (day: string, requests: number) => ({ day, key_id: 'key_gone', plan_id: 'gold', requests });
      for (const hour of ['2026-11-21T23:00:00Z', '2026-11-22T00:00:00Z', '2026-11-22T05:00:00Z'])
        await add(hour, 3).execute(records.db);
      await copyFile(join(MIGRATIONS, KEY_DAYS), join(directory, KEY_DAYS));
      // A move to Postgres that is under way is waited for, and its hours are in.
      const migrated = await records.db.transaction().execute(async (moving) => {
        await add('2026-11-22T05:00:00Z', 10).execute(moving);
        const migrating = records.migrate();
        await until(async () => (await waitingForLocks(records.db)) > 0);
        return { migrating };
      });
      await migrated.migrating;
      expect(await days()).toEqual([row('2026-11-21', 3), row('2026-11-22', 16)]);
      await add('2026-11-22T05:00:00Z', 4).execute(records.db);
      await add('2026-11-23T00:00:00Z', 1).execute(records.db);
      expect(await days()).toEqual([row('2026-11-21', 3), row('2026-11-22', 20), row('2026-11-23', 1)]);
      await add('2026-11-22T06:00:00Z', 5).execute(records.db);
      await copyFile(join(MIGRATIONS, KEY_DAY_QUARTERS), join(directory, KEY_DAY_QUARTERS));
      await records.migrate();
      for (const hour of ['2026-11-22T13:00:00Z', '2026-11-22T23:00:00Z', '2026-11-22T05:00:00Z'])
        await add(hour, 2).execute(records.db);
      const quarters = await sql`
        SELECT requests_before_6 AS a, requests_before_12 AS b, requests_before_18 AS c, requests AS d
        FROM usage_key_days ORDER BY day`.execute(records.db);
      expect(quarters.rows).toEqual([
        { a: 0, b: 0, c: 0, d: 3 },
        { a: 22, b: 27, c: 29, d: 31 },
        { a: 1, b: 1, c: 1, d: 1 },
      ]);
    });
    await rm(directory, { recursive: true });
  });
});
