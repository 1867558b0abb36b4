import { PostgresIntrospector, sql, type TableMetadata } from 'kysely';
import type { RecordsDatabase } from './records-database.ts';

/**
 * Which tables there are, for Kysely's migrator: it looks for its own ones at each start of a gateway, and three times for each migration.
 * Kysely's introspector describes every column of every table for that, of which the partitions of usage have thousands.
 */
export class TableNames extends PostgresIntrospector {
  readonly #db: RecordsDatabase;

  constructor(db: RecordsDatabase) {
    super(db);
    this.#db = db;
  }

  /** Without the columns. */
  override async getTables(): Promise<TableMetadata[]> {
    const { rows } = await sql<Pick<TableMetadata, 'name' | 'schema' | 'isView' | 'isForeign'>>`
      SELECT c.relname AS name, ns.nspname AS schema, c.relkind = 'v' AS "isView", c.relkind = 'f' AS "isForeign"
      FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS ns ON ns.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'v', 'p', 'f') AND has_schema_privilege(ns.oid, 'USAGE')
        AND ns.nspname !~ '^pg_' AND ns.nspname <> 'information_schema'`.execute(this.#db);
    return rows.map((table) => ({ ...table, columns: [] }));
  }
}
