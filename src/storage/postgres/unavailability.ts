import type { PostgresCursor, PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely';
import type { Pool, PoolClient } from 'pg';
import { StoreUnavailable } from '../../errors.ts';

/**
 * Kysely's view of a pool in which every failure that says "Postgres is not there" is a `StoreUnavailable`, and any other
 * error stays what it is. This is the only place that makes the difference.
 *
 * A connection that failed so is closed instead of being given back: after a timeout its answer may still be on the way.
 */
export function withUnavailability(pool: Pool): PostgresPool {
  return {
    options: pool.options,
    connect: () =>
      pool.connect().then(watch, (error: unknown) => {
        // Without a connection nothing was asked, whatever the reason: network, credentials, too many clients.
        throw new StoreUnavailable('postgres', error);
      }),
    end: () => pool.end(),
  };
}

function watch(client: PoolClient): PostgresPoolClient {
  let broken = false;
  function query<R>(text: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>>;
  function query<R>(cursor: PostgresCursor<R>): PostgresCursor<R>;
  function query(text: unknown, parameters: readonly unknown[] = []): unknown {
    if (typeof text !== 'string') {
      throw new TypeError('Cursors are not used here.');
    }
    return client.query(text, [...parameters]).catch((error: unknown) => {
      if (!meansUnavailable(error)) {
        throw error;
      }
      broken = true;
      throw new StoreUnavailable('postgres', error);
    });
  }
  return { query, release: (destroy) => client.release(broken || destroy === true) };
}

/**
 * SQLSTATEs: 08 connection exceptions, 53 out of resources (also too many connections), 57P0x shut down or starting,
 * 57014 cancelled by statement_timeout, 25006 a standby answered, as during a fail-over.
 */
const UNAVAILABLE_STATE = /^(?:08...|53...|57P0.|57014|25006)$/;
const UNAVAILABLE_SYSTEM = /^(?:ECONN\w+|ETIMEDOUT|EPIPE|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/;
/** The errors of `pg` itself have no code. */
const UNAVAILABLE_MESSAGE =
  /^(?:Query read timeout|Connection terminated|Client has encountered a connection error)/;

function meansUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) {
    return false;
  }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  return code === undefined
    ? UNAVAILABLE_MESSAGE.test(error.message)
    : UNAVAILABLE_STATE.test(code) || UNAVAILABLE_SYSTEM.test(code);
}
