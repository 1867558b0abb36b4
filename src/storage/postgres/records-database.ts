import type { Kysely } from 'kysely';
import type { AdminTokensTable } from './admins/admin-tokens-table.ts';
import type { AuditLogEndsTable, AuditLogKeysTable, AuditLogTable } from './audit/audit-log-tables.ts';
import type {
  EventsTable,
  KeyExpiryProgressTable,
  LeasesTable,
  WebhookDeliveriesTable,
  WebhooksTable,
} from './events/events-tables.ts';
import type { HandoverSecretsTable, HandoversTable } from './handovers/handovers-tables.ts';
import type { JobKeysTable, JobsTable } from './jobs/jobs-tables.ts';
import type { ConsumerKeysTable, PreviousSecretsTable } from './keys/consumer-keys-table.ts';
import type { PlansTable } from './plans/plans-table.ts';
import type { SignInSessionsTable } from './sign-in/sign-in-sessions-table.ts';
import type { UsageDaysTable, UsageHoursTable, UsageShardsTable } from './usage/usage-history-tables.ts';

/** The table `secret_imports`. */
interface SecretImportsTable {
  readonly version: number;
}

/** The table `idempotent_responses`. */
interface IdempotentResponsesTable {
  readonly id: Uint8Array;
  readonly created_at: Date;
  readonly sealed: Uint8Array;
}

/** The table `applied_configurations`. */
interface AppliedConfigurationsTable {
  readonly owner: string;
  readonly digest: Uint8Array;
  readonly applied_at: Date;
}

/** The tables of the record store; `sql/` makes them. */
export interface RecordsTables {
  readonly plans: PlansTable;
  readonly consumer_keys: ConsumerKeysTable;
  readonly admin_tokens: AdminTokensTable;
  readonly sign_in_sessions: SignInSessionsTable;
  readonly audit_log: AuditLogTable;
  readonly audit_log_ends: AuditLogEndsTable;
  readonly audit_log_keys: AuditLogKeysTable;
  readonly previous_secrets: PreviousSecretsTable;
  readonly secret_imports: SecretImportsTable;
  readonly applied_configurations: AppliedConfigurationsTable;
  readonly idempotent_responses: IdempotentResponsesTable;
  readonly events: EventsTable;
  readonly webhooks: WebhooksTable;
  readonly webhook_deliveries: WebhookDeliveriesTable;
  readonly leases: LeasesTable;
  readonly handovers: HandoversTable;
  readonly handover_secrets: HandoverSecretsTable;
  readonly jobs: JobsTable;
  readonly job_keys: JobKeysTable;
  readonly key_expiry_progress: KeyExpiryProgressTable;
  readonly usage_hours: UsageHoursTable;
  readonly usage_endpoint_days: UsageDaysTable;
  readonly usage_customer_days: UsageDaysTable;
  readonly usage_shards: UsageShardsTable;
}

/**
 * The record store, a Postgres server or an embedded Postgres. A `bigint` is read as a number (all of ours are below 2^53), a
 * `timestamptz` as a Date, a `date` as text (YYYY-MM-DD), a `bytea` as a Uint8Array. Every query rejects with `StoreUnavailable` when
 * the store does not respond.
 */
export type RecordsDatabase = Kysely<RecordsTables>;

/** Parsers for the types that the clients would read differently, by the type's OID. */
export const TYPE_PARSERS: Readonly<Record<number, (text: string) => unknown>> = {
  // bigint
  20: Number,
  // date
  1082: String,
};
