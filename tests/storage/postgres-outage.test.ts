import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { Pool } from 'pg';
import { StoreBusy, StoreUnavailable } from '../../src/errors.ts';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import { storeFailure, withUnavailability } from '../../src/storage/postgres/unavailability.ts';
import { applyUsageBatch } from '../../src/storage/postgres/usage/apply-usage-batch.ts';
import { PostgresUsageHistory } from '../../src/storage/postgres/usage/postgres-usage-history.ts';
import { freePort } from '../support/free-port.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { openTestRecords } from '../support/records.ts';
import { sampleChange, storeKey } from '../support/sample-records.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';

function open(url: string, idleErrors: Error[] = []): Records {
  return openTestRecords(url, { maxConnections: 3, onIdleError: (error) => void idleErrors.push(error) });
}

describe('the record store, when Postgres goes down', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgresServer();
  });
  afterAll(() => server.stop());

  it('says so for every call, and serves again without a restart when Postgres is back', async () => {
    const idleErrors: Error[] = [];
    const records = open(server.url, idleErrors);
    await records.migrate();
    const key = await storeKey(records);

    await server.halt();
    await until(() => idleErrors.length > 0);
    for (const call of [
      () => records.ping(),
      () => records.keys.find(key.id),
      () => records.keys.bind(key.id, 'default', sampleChange({ atMs: 0 })),
      () => records.plans.list({}),
      () => records.migrate(),
      () => records.pendingMigrations(),
    ]) {
      await expect(call()).rejects.toThrow(StoreUnavailable);
    }

    await server.resume();
    await records.ping();
    expect((await records.keys.find(key.id))?.key.id).toBe(key.id);
    await records.close();
  });

  it('reports a connection cut during a query or a transaction, and opens a new one', async () => {
    const records = open(server.url);
    const killed = records.db.transaction().execute(async (trx) => {
      await sql`select pg_terminate_backend(pg_backend_pid())`.execute(trx);
    });
    await expect(killed).rejects.toThrow(StoreUnavailable);
    await records.ping();
    await records.close();
  });

  it('connects after a file that the URL names is gone', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-ca-'));
    const file = join(directory, 'ca.pem');
    await writeFile(file, 'an authority');
    const url = `${server.url}?sslmode=disable&sslrootcert=${file}`;
    const records = open(url);
    await rm(directory, { recursive: true });
    await records.ping();
    await records.close();
  });

  it('is unavailable where no client can be made', async () => {
    const pool = new Pool({ connectionString: `${server.url}?sslrootcert=/no/such/file.pem` });
    await expect(withUnavailability(pool).connect()).rejects.toThrow(StoreUnavailable);
  });

  it('does not use a connection again on which a statement was cancelled: a transaction may be open', async () => {
    const pool = new Pool({ connectionString: server.url, max: 1 });
    const guarded = withUnavailability(pool);
    const client = await guarded.connect();
    const cancelled = "BEGIN; SET LOCAL statement_timeout = '10ms'; SELECT pg_sleep(10)";
    await expect(client.query(cancelled, [])).rejects.toThrow(StoreBusy);
    client.release();
    const next = await guarded.connect();
    expect((await next.query('SELECT 1 AS one', [])).rows).toEqual([{ one: 1 }]);
    next.release();
    await pool.end();
  });

  it('gives up a whole transaction with the first query that gets no response', async () => {
    const relay = await TcpRelay.start(portOf(server.url));
    const records = open(relay.urlOf(server.url));
    const ended: unknown[] = [];
    let later: Promise<unknown> | undefined;
    const transaction = records.inUnit((unit) =>
      unit.attempt(async () => {
        relay.silence();
        await sql`select 1`.execute(unit.db).catch((error: unknown) => {
          ended.push(error);
          // Waits no longer than a further query in the transaction would.
          later = records.ping().catch(() => void ended.push('a later query'));
          throw error;
        });
      }),
    );
    try {
      const failure = await transaction.catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(StoreUnavailable);
      expect(ended).toEqual([failure]);
      expect(ended[0]).toBe(failure);
      relay.pass();
      await later;
      // The connection of the transaction is closed; the other one has taken its place.
      await until(() => relay.connections <= 1);
      await records.ping();
      expect(relay.accepted).toBe(2);
    } finally {
      await relay.stop();
      await records.close();
    }
  });

  it('goes on with a transaction after a part of it has failed by what Postgres reported', async () => {
    const records = open(server.url);
    const session = sql<{ pid: number }>`select pg_backend_pid() as pid`;
    await records.inUnit(async (unit) => {
      const { rows: before } = await session.execute(unit.db);
      for (const failing of [
        'select 1 / 0',
        "set local statement_timeout = '10ms'; select pg_sleep(10)",
        "do $$ begin raise sqlstate '53200'; end $$",
        "do $$ begin raise sqlstate '25006'; end $$",
      ]) {
        await expect(unit.attempt(() => sql.raw(failing).execute(unit.db))).rejects.toThrow(Error);
        expect((await session.execute(unit.db)).rows).toEqual(before);
      }
    });
    await records.close();
  });

  it('rolls back after an error in a transaction, and uses the connection again', async () => {
    const records = openTestRecords(server.url, { maxConnections: 1 });
    const pids: number[] = [];
    const note = async (db: Records['db']) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db);
      pids.push(...rows.map(({ pid }) => pid));
    };
    const failed = records.db.transaction().execute(async (transaction) => {
      await note(transaction);
      await sql`select 1 / 0`.execute(transaction);
    });
    await expect(failed).rejects.toThrow('division by zero');
    await note(records.db);
    expect(pids).toEqual([pids[0], pids[0]]);
    await records.close();
  });

  it('gives up on a statement after five seconds', async () => {
    // Where this process stands still for a second, the client's own timeout would be first.
    const records = open(`${server.url}?query_timeout=60000`);
    await expect(sql`select pg_sleep(20)`.execute(records.db)).rejects.toThrow(StoreBusy);
    await records.close();
  });

  it('is busy for a query that waits longer for a lock than the operator lets it', async () => {
    const records = open(`${server.url}?options=-c%20lock_timeout=10ms`);
    await records.migrate();
    const held = Promise.withResolvers<void>();
    const isHeld = Promise.withResolvers<void>();
    const holder = records.db.transaction().execute(async (trx) => {
      await sql`LOCK TABLE plans IN ACCESS EXCLUSIVE MODE`.execute(trx);
      isHeld.resolve();
      await held.promise;
    });
    await isHeld.promise;
    await expect(records.plans.list({})).rejects.toThrow(StoreBusy);
    held.resolve();
    await holder;
    await records.plans.list({});
    await records.close();
  });

  it('has usage of a shard moved although another replica has vanished while moving it', async () => {
    const records = open(server.url);
    const batch = { shard: 7, source: 'test', id: 1, slices: [], writers: new Map() };
    const vanished = await records.db.startTransaction().execute();
    await applyUsageBatch(vanished, batch);
    // A hundredth of the timeout that it has, so that the test need not wait for as long.
    await sql`SELECT set_config(name, (setting::int / 100)::text, true) FROM pg_settings
      WHERE name = 'idle_in_transaction_session_timeout'`.execute(vanished);
    expect(await new PostgresUsageHistory(records.db).apply(batch)).toEqual({ kind: 'applied' });
    await expect(vanished.commit().execute()).rejects.toThrow(StoreUnavailable);
    await expect(vanished.rollback().execute()).rejects.toThrow(StoreUnavailable);
    await records.close();
  });

  it('says so where Postgres has ended a transaction that was idle for too long', () => {
    const ended = Object.assign(new Error('terminating connection'), { code: '25P03' });
    expect(storeFailure(ended)).toBeInstanceOf(StoreUnavailable);
    expect(storeFailure(ended)).not.toBeInstanceOf(StoreBusy);
  });

  it('may be tried again when two transactions have waited for each other', async () => {
    const records = open(server.url);
    const [one, other] = [
      await records.db.startTransaction().execute(),
      await records.db.startTransaction().execute(),
    ];
    await sql`select pg_advisory_xact_lock(1)`.execute(one);
    await sql`select pg_advisory_xact_lock(2)`.execute(other);
    const ended = await Promise.allSettled(
      [
        sql`select pg_advisory_xact_lock(2)`.execute(one),
        sql`select pg_advisory_xact_lock(1)`.execute(other),
      ].map((waiting, index) => waiting.finally(() => [one, other][index]?.rollback().execute())),
    );
    const reasons = ended.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
    expect(reasons).toEqual([expect.any(StoreBusy)]);
    await records.close();
  });

  it('leaves an error that is not an outage as it is', async () => {
    const records = open(server.url);
    await expect(sql`select 1 / 0`.execute(records.db)).rejects.toThrow('division by zero');
    await records.close();
  });

  it('says so when nothing listens, and when the credentials are rejected', async () => {
    const nobody = open(`postgres://postgres@127.0.0.1:${await freePort()}/postgres`);
    await expect(nobody.ping()).rejects.toThrow(StoreUnavailable);
    await nobody.close();
    const stranger = open(server.url.replace('postgres:postgres@', 'postgres:wrong@'));
    await expect(stranger.ping()).rejects.toThrow(StoreUnavailable);
    await stranger.close();
  });
});
