import { mkdir } from 'node:fs/promises';
import { Kysely, PGliteDialect } from 'kysely';
import { type Records, type RecordsOptions, recordsIn } from '../postgres/open-records.ts';
import { BIGINT_OID, type RecordsTables } from '../postgres/records-database.ts';
import { applyMigrations } from '../postgres/sql-migrations.ts';
import { lockDirectory } from './directory-lock.ts';
import { withUnavailability } from './embedded-unavailability.ts';

/** Where the embedded store keeps its files. */
export interface EmbeddedOptions {
  /** Made with mode 700 when missing. A file `<directory>.lock` beside it keeps a second process out. */
  readonly directory: string;
}

/**
 * Records in a Postgres that runs in this process (PGlite), for one machine and one process: all queries take turns. Same
 * SQL, same repositories as on a server. Rejects when another process has the directory, or the optional package is not installed.
 */
export async function openEmbeddedRecords(options: EmbeddedOptions & RecordsOptions): Promise<Records> {
  const { PGlite } = await import('@electric-sql/pglite').catch((cause: unknown) => {
    throw new Error(
      'The embedded record store needs the optional package @electric-sql/pglite: install it, or set DATABASE_URL.',
      { cause },
    );
  });
  await mkdir(options.directory, { recursive: true, mode: 0o700 });
  const unlock = await lockDirectory(options.directory);
  try {
    const pglite = await PGlite.create(options.directory, { parsers: { [BIGINT_OID]: Number } });
    const db = new Kysely<RecordsTables>({
      dialect: new PGliteDialect({ pglite: withUnavailability(pglite) }),
    });
    const close = async () => {
      await db.destroy();
      // Kysely closes what it has used: after no query at all, that is nothing.
      if (!pglite.closed) {
        await pglite.close();
      }
      await unlock();
    };
    return { ...recordsIn(db, options, () => applyMigrations(db, options.migrationsDirectory)), close };
  } catch (error) {
    await unlock();
    throw error;
  }
}
