import { setImmediate as nextTurn } from 'node:timers/promises';
import { Kysely, type PGlite, PGliteDialect, type PGliteTransaction } from 'kysely';
import { makePrivateDirectory } from '../../platform/process/private-directory.ts';
import { StartFault } from '../../platform/process/start-fault.ts';
import { type Records, type RecordsOptions, recordsIn } from '../postgres/open-records.ts';
import { type RecordsDatabase, type RecordsTables, TYPE_PARSERS } from '../postgres/records-database.ts';
import { applyMigrations } from '../postgres/sql-migrations.ts';
import { TableNames } from '../postgres/table-names.ts';
import { storeFailure } from '../postgres/unavailability.ts';
import { lockDirectory } from './directory-lock.ts';
import { EmbeddedUpkeep } from './embedded-upkeep.ts';

/** Where the embedded store keeps its files. */
export interface EmbeddedOptions {
  /** Made with mode 700 when missing. A lock beside it keeps a second process out. */
  readonly directory: string;
  /** Called if a checkpoint or a vacuum fails. */
  readonly onUpkeepFailure: (error: unknown) => void;
}

/**
 * Records in a Postgres that runs in this process (PGlite), for a gateway of one process: queries run one after the other. It has the
 * SQL and the repositories of a server. Rejects if another process has the directory, it has only a part of a database, or the optional
 * package is not installed.
 */
export async function openEmbeddedRecords(options: EmbeddedOptions & RecordsOptions): Promise<Records> {
  const { PGlite } = await import('@electric-sql/pglite').catch((cause: unknown) => {
    throw new StartFault(
      'The embedded record store needs the optional package @electric-sql/pglite: install it, or set DATABASE_URL.',
      { cause },
    );
  });
  makePrivateDirectory(options.directory);
  const unlock = await lockDirectory(options.directory);
  try {
    const pglite = await PGlite.create(options.directory, { parsers: TYPE_PARSERS }).catch(
      (cause: unknown) => {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new StartFault(
          `The embedded database in ${options.directory} can not be opened (${reason}): check the room and the permissions there, or restore it from a backup. If its first start was killed, remove it.`,
          { cause },
        );
      },
    );
    const upkeep = new EmbeddedUpkeep(pglite, options.onUpkeepFailure);
    const db = new Kysely<RecordsTables>({
      dialect: new EmbeddedDialect({ pglite: wrapped(pglite, upkeep) }),
    });
    const close = async () => {
      await upkeep.stop();
      await db.destroy();
      // Kysely closes the database only if it has run a query.
      if (!pglite.closed) {
        await pglite.close();
      }
      unlock();
    };
    return { ...recordsIn(db, options, () => applyMigrations(db, options)), close };
  } catch (error) {
    unlock();
    throw error;
  }
}

class EmbeddedDialect extends PGliteDialect {
  override createIntrospector(db: RecordsDatabase): TableNames {
    return new TableNames(db);
  }
}

/**
 * Wraps an embedded Postgres for Kysely: every failed query rejects with the result of `storeFailure`, and `upkeep` counts all. PGlite
 * uses no asynchronous I/O: each query or transaction first waits for a turn of the event loop, so that many of them in a row do not hold
 * up requests.
 */
function wrapped(pglite: PGlite, upkeep: EmbeddedUpkeep): PGlite {
  const query = queryOf(pglite, upkeep);
  return {
    get closed() {
      return pglite.closed;
    },
    get ready() {
      return pglite.ready;
    },
    waitReady: pglite.waitReady,
    close: () => pglite.close(),
    query: async (text, parameters, options) => {
      await nextTurn();
      return query(text, parameters, options);
    },
    transaction: async (work) => {
      await nextTurn();
      return pglite.transaction((trx) =>
        work({ query: queryOf(trx, upkeep), rollback: () => trx.rollback() }),
      );
    },
  };
}

function queryOf(database: Pick<PGliteTransaction, 'query'>, upkeep: EmbeddedUpkeep): PGlite['query'] {
  return (text, parameters, options) => {
    upkeep.noteQuery();
    return database.query<never>(text, parameters, options).catch((error: unknown) => {
      throw storeFailure(error);
    });
  };
}
