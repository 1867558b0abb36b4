import {
  CompiledQuery,
  type DatabaseConnection,
  Kysely,
  PostgresAdapter,
  type PostgresDialectConfig,
  PostgresDriver,
  PostgresQueryCompiler,
  type TransactionSettings,
} from 'kysely';
import { type ClientConfig, Pool, types } from 'pg';
import { parse } from 'pg-connection-string';
import { type RecordsDatabase, type RecordsTables, TYPE_PARSERS } from './records-database.ts';
import { TableNames } from './table-names.ts';
import { withUnavailability } from './unavailability.ts';

/** Connections of a gateway process: key queries, management, the usage flusher. */
export const POSTGRES_CONNECTIONS = 14;

/** How to reach a Postgres server. */
export interface PostgresOptions {
  readonly server: ClientConfig;
  /** Connections of this process at most. */
  readonly maxConnections: number;
  /** Called when an idle connection broke; the pool replaces it by itself. */
  readonly onIdleError: (error: Error) => void;
}

/** Longest wait for a connection, and longest run of a statement, in milliseconds. */
const TIMEOUT_MS = 5000;
/** After it a query has failed whose server does not respond: one second later than that server cancels it. */
export const QUERY_TIMEOUT_MS = TIMEOUT_MS + 1000;
/**
 * Postgres ends a session whose transaction has been idle for this time, and its locks with it: the replica is stuck, or was cut off. A
 * statement may run for longer. The URL may have another time, as for the timeouts above.
 */
const IDLE_TIMEOUT = 'idle_in_transaction_session_timeout';
const SET_IDLE_TIMEOUT = `SET LOCAL ${IDLE_TIMEOUT} = '15s'`;

/** The driver reads instants in this style only, but a server, database or role may have another default. PgBouncer keeps the setting. */
const SESSION = 'SET datestyle TO ISO';

/** What the URL of a server says, with the content of the files that it names. Throws if one can't be read. */
export function serverOf(url: string): ClientConfig {
  // As the client itself would for each connection; its types lack the null of what the URL does not say.
  return parse(url) as object;
}

/** Connects on first use, and again after an outage of Postgres. Destroy it to close its connections. */
export function connectPostgres(options: PostgresOptions): RecordsDatabase {
  // The server's timeout is first, so that no statement runs on after we gave up; ours is for a server that does not respond.
  return connect(options, { statement_timeout: TIMEOUT_MS, query_timeout: QUERY_TIMEOUT_MS });
}

/**
 * The same without a timeout for statements: migrations wait for each other's lock and may take long. Keep it for no longer than a
 * migration.
 */
export function connectPostgresForMigration(options: PostgresOptions): RecordsDatabase {
  return connect({ ...options, maxConnections: 2 }, {});
}

function connect(
  { server, maxConnections, onIdleError }: PostgresOptions,
  timeouts: { readonly statement_timeout?: number; readonly query_timeout?: number },
): RecordsDatabase {
  const pool = new Pool({
    application_name: 'tollgate',
    ...timeouts,
    ...server,
    max: maxConnections,
    connectionTimeoutMillis: TIMEOUT_MS,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    types: { getTypeParser },
    // The pool gives out a connection only after this has resolved.
    onConnect: async (client) => void (await client.query(SESSION)),
  });
  // An 'error' event without a listener would end the process. The pool listens to idle connections only. If a connection is in
  // use, its query rejects as well, so the event can be ignored.
  pool.on('error', onIdleError);
  pool.on('connect', (client) => void client.on('error', () => {}));
  const isSet = IDLE_TIMEOUT in server || server.options?.includes(IDLE_TIMEOUT) === true;
  const onBegin = isSet ? '' : SET_IDLE_TIMEOUT;
  return new Kysely<RecordsTables>({
    dialect: {
      createDriver: () => new RecordsDriver({ pool: withUnavailability(pool) }, onBegin),
      createAdapter: () => new UnlockedAdapter(),
      createIntrospector: (db) => new TableNames(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });
}

/** Disables Kysely's lock of migrations, which belongs to the session: the lock of `applyMigrations` ends with the transaction. */
class UnlockedAdapter extends PostgresAdapter {
  override async acquireMigrationLock(): Promise<void> {}
  override async releaseMigrationLock(): Promise<void> {}
}

/** Begins each transaction with a further statement, in the same round trip. With a pooler a session can't keep what it sets. */
class RecordsDriver extends PostgresDriver {
  readonly #onBegin: string;

  constructor(config: PostgresDialectConfig, onBegin: string) {
    super(config);
    this.#onBegin = onBegin;
  }

  override beginTransaction(connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    const executeQuery: DatabaseConnection['executeQuery'] = ({ sql }) =>
      connection.executeQuery(CompiledQuery.raw(`${sql}; ${this.#onBegin}`));
    return super.beginTransaction({ ...connection, executeQuery }, settings);
  }
}

const getTypeParser: typeof types.getTypeParser = (oid: number, format?: 'text' | 'binary') =>
  (format === 'binary' ? undefined : TYPE_PARSERS[oid]) ?? types.getTypeParser(oid, format as 'text');
