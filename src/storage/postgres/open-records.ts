// The room `storage`: the stores behind the ports, in `postgres/` (records, history), `redis/` (decisions, live counts) and `embedded/`
// (both without servers).
// In: calls of ports that other rooms define.
// Out: their results, or `StoreUnavailable`; no type of a database library leaves this room.

import { sql } from 'kysely';
import type { SealedTokens } from '../../admins/rotate-admin-tokens.ts';
import { AuditChain, type ChainSecrets } from '../../audit/audit-chain.ts';
import type { AuditLog } from '../../audit/audit-log.ts';
import type { Outbox } from '../../events/degradation-events.ts';
import type { DeliveryQueue } from '../../events/delivery/delivery.ts';
import type { SealedWebhooks } from '../../events/rotate-sealed-webhooks.ts';
import type { ResponseStore } from '../../idempotency/response-store.ts';
import type { SealedHandovers } from '../../keys/handovers/rotate-sealed-handovers.ts';
import type { SealedKeys } from '../../keys/secrets/rotate-sealed-keys.ts';
import type { RecordChanges } from '../../limiter/changes/record-changes.ts';
import { PostgresSealedTokens } from './admins/postgres-sealed-tokens.ts';
import { AuditedChanges } from './audit/audited-changes.ts';
import { PostgresAuditLog } from './audit/postgres-audit-log.ts';
import { PostgresRecordChanges } from './changes/postgres-record-changes.ts';
import { PostgresOutbox } from './events/outbox.ts';
import { PostgresDeliveryQueue } from './events/postgres-delivery-queue.ts';
import type { KeyReading } from './keys/postgres-key-repository.ts';
import { PostgresSealedKeys } from './keys/postgres-sealed-keys.ts';
import {
  connectPostgres,
  connectPostgresForMigration,
  type PostgresOptions,
  serverOf,
} from './postgres-connection.ts';
import { PostgresResponseStore } from './postgres-response-store.ts';
import { type RecordScope, type RecordUnit, runUnit } from './record-units.ts';
import type { RecordsDatabase } from './records-database.ts';
import { type Repositories, repositoriesOn } from './repositories.ts';
import {
  applyMigrations,
  type MigrationStates,
  migrationStates,
  pendingMigrations,
} from './sql-migrations.ts';

/** The open record store: its repositories, units of work, and functions to migrate, probe and close it. */
export interface Records extends RecordScope {
  readonly webhooks: Repositories['webhooks'] & SealedWebhooks;
  readonly audit: AuditLog;
  readonly recordChanges: RecordChanges;
  readonly deliveries: DeliveryQueue;
  readonly handovers: Repositories['handovers'] & SealedHandovers;
  readonly outbox: Outbox;
  /** For the rotation of encryption keys. */
  readonly sealedKeys: SealedKeys;
  readonly sealedTokens: SealedTokens;
  /** Responses to requests with an `Idempotency-Key`. */
  readonly responses: ResponseStore<RecordUnit>;
  /** For the repositories that are built elsewhere. */
  readonly db: RecordsDatabase;
  /** Applies the pending migrations, as `applyMigrations` does. */
  migrate(): Promise<readonly string[]>;
  /** The names of the migrations that are not applied yet; empty if the tables suit this version of the program. */
  pendingMigrations(): Promise<readonly string[]>;
  /** The version of Postgres, and which migrations it has. Rejects with `StoreUnavailable`. */
  describe(): Promise<MigrationStates & { readonly version: string }>;
  /** Asks the server for its version, clock and role. Rejects with `StoreUnavailable`. */
  readServer(): Promise<PostgresServer>;
  /** Writes some megabytes that the server removes at once. Rejects with `StoreUnavailable`, also if its disk has no room for them. */
  probeDisk(): Promise<void>;
  /** Resolves when the store responds; rejects with `StoreUnavailable` otherwise. */
  ping(): Promise<void>;
  /** Closes all connections. Call it once, last. */
  close(): Promise<void>;
}

/** A Postgres server. */
interface PostgresServer {
  readonly version: string;
  /** The time by its clock, in milliseconds since 1970. */
  readonly nowMs: number;
  /** Whether it is a standby, which only replays the writes of a primary. */
  readonly isStandby: boolean;
  /** Whether it takes no writes: a standby, or set so (`default_transaction_read_only`). */
  readonly isReadOnly: boolean;
}

/** Options of every record store, on a server or embedded. */
export interface RecordsOptions extends KeyReading {
  /** Where the migrations are: `sql/`. */
  readonly migrationsDirectory: string;
  /** Links the entries of the audit log. Null for a program that makes no changes: each would be rejected. */
  readonly chainSecrets: ChainSecrets | null;
  /** Called before each change, which is not made if this throws. */
  readonly beforeChange?: () => void;
}

/** Options of the records in a Postgres server. */
type OpenRecordsOptions = RecordsOptions & Omit<PostgresOptions, 'server'> & { readonly url: string };

/**
 * Records in a Postgres server. Connects with the first query: a server that is unreachable is reported by `ping`, not here. Throws if a
 * file that the URL names can't be read.
 */
export function openRecords({ url, ...options }: OpenRecordsOptions): Records {
  const postgres = { ...options, server: serverOf(url) };
  const db = connectPostgres(postgres);
  return recordsIn(db, options, async () => {
    // At most starts there are none, and no further connection is made.
    if ((await pendingMigrations(db, options.migrationsDirectory)).length === 0) return [];
    const migrating = connectPostgresForMigration(postgres);
    try {
      return await applyMigrations(migrating, options);
    } finally {
      await migrating.destroy();
    }
  });
}

/** The record store in an open database, with `migrate` as given. */
export function recordsIn(
  db: RecordsDatabase,
  options: RecordsOptions,
  migrate: () => Promise<readonly string[]>,
): Records {
  const { defaultPlanId, beforeChange } = options;
  const chain = new AuditChain(options.chainSecrets);
  const changes = new AuditedChanges(db, chain, beforeChange);
  const repositories = repositoriesOn(db, changes, options);
  const inUnit: Records['inUnit'] = (work) =>
    runUnit(db, (trx) => repositoriesOn(trx, new AuditedChanges(trx, chain, beforeChange), options), work);
  return {
    ...repositories,
    inUnit,
    afterCommit: (effect) => effect(),
    audit: new PostgresAuditLog(db, changes, chain),
    recordChanges: new PostgresRecordChanges(db, { plans: repositories.plans, defaultPlanId }),
    deliveries: new PostgresDeliveryQueue(db),
    outbox: new PostgresOutbox(db),
    sealedKeys: new PostgresSealedKeys(db),
    sealedTokens: new PostgresSealedTokens(db),
    responses: new PostgresResponseStore(db, inUnit),
    db,
    migrate,
    pendingMigrations: () => pendingMigrations(db, options.migrationsDirectory),
    describe: async () => {
      const { rows } = await sql<{ server_version: string }>`show server_version`.execute(db);
      const states = await migrationStates(db, options.migrationsDirectory);
      return { ...states, version: rows[0]?.server_version ?? '' };
    },
    readServer: async () => {
      const { rows } = await sql<PostgresServer>`
        select current_setting('server_version') as version, (extract(epoch from clock_timestamp()) * 1000)::float8 as "nowMs",
          pg_is_in_recovery() as "isStandby", current_setting('transaction_read_only') = 'on' as "isReadOnly"`.execute(
        db,
      );
      const [server = { version: '', nowMs: 0, isStandby: false, isReadOnly: false }] = rows;
      return server;
    },
    probeDisk: () =>
      db.transaction().execute(async (transaction) => {
        // Rows of a function that do not fit in work_mem go to a temporary file, for which no right is needed.
        await sql`set local work_mem = '64kB'`.execute(transaction);
        await sql`select count(*) from generate_series(1, 200000)`.execute(transaction);
      }),
    ping: async () => void (await sql`select 1`.execute(db)),
    close: () => db.destroy(),
  };
}
