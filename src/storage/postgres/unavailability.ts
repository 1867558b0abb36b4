import type { PostgresCursor, PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely';
import type { Pool, PoolClient, QueryResult } from 'pg';
import { StoreBusy, StoreUnavailable } from '../../errors.ts';

/**
 * Wraps a pool for Kysely: every failed query rejects with the result of `storeFailure`.
 *
 * A connection on which Postgres was unavailable, or cancelled a statement, is closed instead of being returned to the pool: after a timeout
 * its reply may still be on the way. Until then each further query rejects at once with the error of the timeout, also a rollback: the client
 * would send it only after that reply. Postgres rolls back when the connection is closed.
 */
export function withUnavailability(pool: Pool): PostgresPool {
  return {
    options: pool.options,
    connect: () =>
      // A client that can't be made throws.
      Promise.try(() => pool.connect()).then(watch, (error: unknown) => {
        // Without a connection no query was sent, whatever the reason: network, credentials, too many clients.
        throw new StoreUnavailable('postgres', error);
      }),
    end: () => pool.end(),
  };
}

function watch(client: PoolClient): PostgresPoolClient {
  let broken = false;
  /** What the query rejected with after which nothing more can be received. */
  let lost: unknown;
  function query<R>(text: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>>;
  function query<R>(cursor: PostgresCursor<R>): PostgresCursor<R>;
  function query(text: unknown, parameters: readonly unknown[] = []): unknown {
    if (typeof text !== 'string') {
      throw new TypeError('Cursors are not used here.');
    }
    if (lost !== undefined) return Promise.reject(lost);
    return client.query(text, [...parameters]).then(takeRows, (error: unknown) => {
      broken ||= meansUnavailable(error) || hasState(error, UNCLEAR_STATE);
      const failure = storeFailure(error);
      if (meansLost(error)) lost ??= failure;
      throw failure;
    });
  }
  return { query, release: (destroy) => client.release(broken || destroy === true) };
}

/**
 * Takes the rows from the client's own result, so that they can be collected soon after their use. `pg` writes the callback of a query as the
 * value of a property, which V8 allocates in the old generation: what it refers to stays until a collection of the whole heap.
 */
function takeRows(result: QueryResult): QueryResult {
  const { rows } = result;
  result.rows = [];
  return { ...result, rows };
}

/**
 * The error with which a failed query rejects: `StoreBusy` if Postgres cancelled the statement, which may have waited for a lock, or rolled the transaction back for another one;
 * `StoreUnavailable` if it is unavailable, or lacks tables or columns that this version of the program needs; otherwise the error itself.
 * This is the only place that makes the distinction.
 */
export function storeFailure(error: unknown): unknown {
  if ([CANCELLED_STATE, LOCKED_STATE, ROLLED_BACK_STATE].some((state) => hasState(error, state)))
    return new StoreBusy('postgres', error);
  return meansUnavailable(error) || hasState(error, UNPREPARED_STATE)
    ? new StoreUnavailable('postgres', error)
    : error;
}

/** Whether a query failed because Postgres cancelled its statement, for which it may be too large. */
export function isStatementTimeout(error: unknown): boolean {
  return error instanceof StoreBusy && hasState(error.cause, CANCELLED_STATE);
}

/** Whether a query failed because it waited too long for a lock. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof StoreBusy && hasState(error.cause, LOCKED_STATE);
}

/** Whether a transaction failed because Postgres rolled it back for another one: it can be tried again. */
export function isRolledBack(error: unknown): boolean {
  return error instanceof StoreBusy && hasState(error.cause, ROLLED_BACK_STATE);
}

/**
 * SQLSTATEs: 08 connection exceptions, 53 out of resources (also too many connections), 57P0x shut down or starting,
 * 25006 a standby replied, as during a failover, 25P03 and 25P04 the transaction took too long and the connection was closed.
 */
const UNAVAILABLE_STATE = /^(?:08...|53...|57P0.|25006|25P0[34])$/;
/** Cancelled by statement_timeout. */
const CANCELLED_STATE = /^57014$/;
/** Waited for a lock for longer than lock_timeout. */
const LOCKED_STATE = /^55P03$/;
/** It is not known whether a transaction is open, if a statement was cancelled that begins one; or one that has failed is. */
const UNCLEAR_STATE = /^(?:57014|25P02)$/;
/** A table, a column or the schema is missing: the migrations are still to be applied. */
const UNPREPARED_STATE = /^(?:42P01|42703|3F000)$/;
/** A serialization failure; or two transactions waited for each other. */
const ROLLED_BACK_STATE = /^(?:40001|40P01)$/;
const UNAVAILABLE_SYSTEM = /^(?:ECONN\w+|ETIMEDOUT|EPIPE|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/;
/** The errors of `pg` itself have no code. */
const UNAVAILABLE_MESSAGE =
  /^(?:Query read timeout|Connection terminated|Client has encountered a connection error)/;

function meansUnavailable(error: unknown): boolean {
  return meansLost(error) || hasState(error, UNAVAILABLE_STATE);
}

/** Whether nothing more can be received on the connection: it is cut, or a response did not come in time. What Postgres reports came. */
function meansLost(error: unknown): boolean {
  if (!(error instanceof Error)) {
    return false;
  }
  const code = codeOf(error);
  return code === undefined ? UNAVAILABLE_MESSAGE.test(error.message) : UNAVAILABLE_SYSTEM.test(code);
}

function hasState(error: unknown, states: RegExp): boolean {
  return error instanceof Error && states.test(codeOf(error) ?? '');
}

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
