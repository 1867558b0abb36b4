import type { Kysely } from 'kysely';
import type { ConsumerKeysTable } from './consumer-keys-table.ts';
import type { PlansTable } from './plans-table.ts';

/** The tables of the record store; `sql/` makes them. */
export interface RecordsTables {
  readonly plans: PlansTable;
  readonly consumer_keys: ConsumerKeysTable;
}

/**
 * The record store, whether a Postgres server or an embedded one. A `bigint` is read as a number (all of ours are below
 * 2^53), a `timestamptz` as a Date, a `bytea` as a Uint8Array. Every query rejects with `StoreUnavailable` when the
 * store does not answer.
 */
export type RecordsDatabase = Kysely<RecordsTables>;

/** The type number of `bigint` on Postgres's wire. */
export const BIGINT_OID = 20;
