import { describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { openTestRecords } from '../support/records.ts';
import { storeKey } from '../support/sample-records.ts';
import { createTestDatabase } from '../support/stores.ts';

describe('the record store in a database with defaults of its own', () => {
  it.each([
    [["datestyle TO 'German'", "timezone TO 'Pacific/Auckland'"]],
    [["datestyle TO 'SQL, DMY'", "intervalstyle TO 'sql_standard'"]],
  ])('reads what it wrote: %j', async (settings) => {
    const database = await createTestDatabase();
    const before = openTestRecords(database.url);
    const name = new URL(database.url).pathname.slice(1);
    for (const setting of settings)
      await sql`ALTER DATABASE ${sql.id(name)} SET ${sql.raw(setting)}`.execute(before.db);
    await before.close();

    const records = openTestRecords(database.url);
    await records.migrate();
    const key = await storeKey(records);
    expect(await records.keys.find(key.id)).toMatchObject({ key: { createdAtMs: key.createdAtMs } });
    expect(await records.plans.find('default')).toMatchObject({ createdAtMs: expect.any(Number) });
    await records.close();
    await database.drop();
  });
});
