import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { openRecords, type Records } from '../../src/storage/postgres/open-records.ts';
import { MIGRATIONS } from '../support/records.ts';
import { createTestDatabase } from '../support/stores.ts';

async function withRecords(directory: string, replicas: number, run: (all: Records[]) => Promise<void>) {
  const database = await createTestDatabase();
  const all = Array.from({ length: replicas }, () =>
    openRecords({
      url: database.url,
      maxConnections: 2,
      migrationsDirectory: directory,
      defaultPlanId: null,
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

  it('leave nothing behind when one of them fails', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-sql-'));
    await writeFile(join(directory, '0001_good.sql'), '-- a comment;\nCREATE TABLE good (id int);\n');
    await writeFile(
      join(directory, '0002_bad.sql'),
      "INSERT INTO good VALUES (1);\nSELECT 'no number'::int;\n",
    );
    await withRecords(directory, 1, async ([records]) => {
      await expect(records?.migrate()).rejects.toThrow('The migration 0002_bad failed.');
      expect(await records?.pendingMigrations()).toEqual(['0001_good', '0002_bad']);
      await writeFile(
        join(directory, '0002_bad.sql'),
        "INSERT INTO good\nVALUES (';'),\n  ('2');\n".replace("';'", '1'),
      );
      expect(await records?.migrate()).toEqual(['0001_good', '0002_bad']);
      const rows = records && (await sql`select id from good`.execute(records.db)).rows;
      expect(rows).toEqual([{ id: 1 }, { id: 2 }]);
    });
    await rm(directory, { recursive: true });
  });
});
