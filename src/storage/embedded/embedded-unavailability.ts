import type { PGlite, PGliteTransaction } from 'kysely';
import { storeFailure } from '../postgres/unavailability.ts';

/** Wraps an embedded Postgres for Kysely: every failed query rejects with the result of `storeFailure`. */
export function withUnavailability(pglite: PGlite): PGlite {
  return {
    get closed() {
      return pglite.closed;
    },
    get ready() {
      return pglite.ready;
    },
    waitReady: pglite.waitReady,
    close: () => pglite.close(),
    query: queryOf(pglite),
    transaction: (work) =>
      pglite.transaction((trx) => work({ query: queryOf(trx), rollback: () => trx.rollback() })),
  };
}

function queryOf(database: Pick<PGliteTransaction, 'query'>): PGlite['query'] {
  return (text, parameters, options) =>
    database.query<never>(text, parameters, options).catch((error: unknown) => {
      throw storeFailure(error);
    });
}
