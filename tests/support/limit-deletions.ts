import { sql } from 'kysely';
import type { RecordsDatabase } from '../../src/storage/postgres/records-database.ts';

/** From now on every statement fails that deletes more rows of a table than `most`, as one would that takes longer than it may. */
export async function limitDeletions(db: RecordsDatabase, table: string, most = 1000): Promise<void> {
  const name = sql.raw(`limit_deletions_of_${table}`);
  await sql`CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT count(*) FROM gone) > ${sql.lit(most)} THEN RAISE 'too many rows for one statement'; END IF;
    RETURN NULL; END $$`.execute(db);
  await sql`CREATE TRIGGER ${name} AFTER DELETE ON ${sql.table(table)} REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION ${name}()`.execute(db);
}
