import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { ADVISORY_LOCKS } from '../../src/storage/postgres/advisory-locks.ts';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import { MIGRATIONS, openTestRecords } from '../support/records.ts';
import { createTestDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { waitingForLocks } from '../support/waiting-for-locks.ts';

function openUnmigrated(url: string, directory: string): Records {
  return openTestRecords(url, { migrationsDirectory: directory, defaultPlanId: null, chainSecrets: null });
}

async function withRecords(directory: string, replicas: number, run: (all: Records[]) => Promise<void>) {
  const database = await createTestDatabase();
  const all = Array.from({ length: replicas }, () => openUnmigrated(database.url, directory));
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

  it('let others read a table that a transaction holds, and are applied once that has ended', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-sql-'));
    await writeFile(join(directory, '0001_first.sql'), 'CREATE TABLE first (id int);\n');
    await withRecords(directory, 3, async ([migrating, dumping, serving]) => {
      if (!migrating || !dumping || !serving) throw new Error('three are needed');
      await migrating.migrate();
      await writeFile(join(directory, '0002_column.sql'), 'ALTER TABLE first ADD COLUMN name text;\n');
      const dump = await dumping.db.startTransaction().execute();
      await sql`SELECT FROM first`.execute(dump);
      const migrated = migrating.migrate();
      await until(async () => (await waitingForLocks(serving.db)) > 0);
      expect((await sql`SELECT FROM first`.execute(serving.db)).rows).toEqual([]);
      await dump.commit().execute();
      expect(await migrated).toEqual(['0002_column']);
    });
    await rm(directory, { recursive: true });
  });

  it('have no timeout of the role, also while one waits for another', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-sql-'));
    await writeFile(
      join(directory, '0001_long.sql'),
      "CREATE TABLE long AS SELECT current_setting('statement_timeout') AS timeout;\n",
    );
    const database = await createTestDatabase();
    // As for the role behind a pooler: the URL sets nothing.
    const url = new URL(database.url);
    const name = url.pathname.slice(1);
    url.search = '';
    const records = openUnmigrated(database.url, directory);
    for (const timeout of ["statement_timeout TO '1min'", "lock_timeout TO '1ms'"])
      await sql`ALTER DATABASE ${sql.id(name)} SET ${sql.raw(timeout)}`.execute(records.db);
    const migrating = openUnmigrated(url.href, directory);
    try {
      const other = await records.db.startTransaction().execute();
      await sql`SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.migrations})`.execute(other);
      const migrated = migrating.migrate();
      const isWaiting = until(async () => (await waitingForLocks(records.db)) > 0);
      await Promise.race([migrated, isWaiting]).finally(() => other.commit().execute());
      expect(await migrated).toEqual(['0001_long']);
      expect((await sql`SELECT timeout FROM long`.execute(records.db)).rows).toEqual([{ timeout: '0' }]);
    } finally {
      await records.close();
      await migrating.close();
      await database.drop();
      await rm(directory, { recursive: true });
    }
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

  it('make tables that sum the hours by key, day and quarter', async () => {
    await withRecords(MIGRATIONS, 1, async ([records]) => {
      if (records === undefined) throw new Error('no records');
      await records.migrate();
      const add = (hour: string, requests: number) => sql`
        INSERT INTO usage_hours AS stored (key_id, hour, plan_id, requests, successful, forwarded, forwarded_us, rate_limited)
        VALUES ('key_gone', ${hour}, 'gold', ${requests}, 1, 1, 1, 1)
        ON CONFLICT (key_id, hour, plan_id) DO UPDATE SET requests = stored.requests + excluded.requests,
          rate_limited = stored.rate_limited + 1`;
      const added: readonly (readonly [hour: string, requests: number])[] = [
        ['2026-11-21T23:00:00Z', 3],
        ['2026-11-22T05:00:00Z', 16],
        ['2026-11-22T05:00:00Z', 6],
        ['2026-11-22T06:00:00Z', 5],
        ['2026-11-22T13:00:00Z', 2],
        ['2026-11-22T23:00:00Z', 2],
        ['2026-11-23T00:00:00Z', 1],
      ];
      for (const [hour, requests] of added) await add(hour, requests).execute(records.db);
      const { rows } = await sql`
        SELECT day::text, key_id, plan_id, requests_before_6 AS a, requests_before_12 AS b, requests_before_18 AS c, requests AS d,
          requests_5 AS five, requests_6 AS six, requests_23 AS last, rate_limited AS limited
        FROM usage_key_days ORDER BY day`.execute(records.db);
      const ofKey = { key_id: 'key_gone', plan_id: 'gold' };
      expect(rows).toEqual([
        { day: '2026-11-21', ...ofKey, a: 0, b: 0, c: 0, d: 3, five: 0, six: 0, last: 3, limited: 1 },
        { day: '2026-11-22', ...ofKey, a: 22, b: 27, c: 29, d: 31, five: 22, six: 5, last: 2, limited: 5 },
        { day: '2026-11-23', ...ofKey, a: 1, b: 1, c: 1, d: 1, five: 0, six: 0, last: 0, limited: 1 },
      ]);
    });
  });
});
