import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import { statusOf } from '../support/burst.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { until } from '../support/until.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startInProcessFleet(1, { USAGE_FLUSH_MS: '200' });
});
afterAll(() => fleet?.stop());

/** Makes the database read-only, or not, for every connection that is made from now on, and ends those that there are. */
async function setReadOnly(isReadOnly: boolean): Promise<void> {
  const url = new URL(fleet.environment.DATABASE_URL ?? '');
  const name = decodeURIComponent(url.pathname.slice(1));
  // A connection that is read-only itself may still change this setting.
  const client = new Client({ connectionString: url.href, options: '-c default_transaction_read_only=off' });
  await client.connect();
  try {
    await client.query(
      `ALTER DATABASE "${name}" SET default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`,
    );
    await client.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );
  } finally {
    await client.end();
  }
}

describe('a Postgres that is read-only for a while', () => {
  it('stops changes with 503 and nothing else, and loses no usage', async () => {
    const url = fleet.replicas[0]?.url ?? '';
    const { id, secret } = await fleet.admin.makeKey('kept');
    const unseen = await fleet.admin.makeKey('not seen yet');
    expect(await statusOf(url, secret)).toBe(200);
    await setReadOnly(true);
    try {
      await until(async () => (await fleet.admin.call('GET', `/consumer-api-key/${id}`)).status === 200);
      expect(await statusOf(url, secret)).toBe(200);
      expect(await statusOf(url, unseen.secret)).toBe(200);
      const created = await fleet.admin.call('POST', '/consumer-api-key/create', { name: 'late' });
      expect([created.status, created.body.code]).toEqual([503, 'store_unavailable']);
      const changed = await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { enabled: false });
      expect([changed.status, changed.body.code]).toEqual([503, 'store_unavailable']);
      expect(await statusOf(url, secret)).toBe(200);
    } finally {
      await setReadOnly(false);
    }
    await until(
      async () => (await fleet.admin.call('POST', '/consumer-api-key/create', { name: 'n' })).status === 201,
    );
    await until(async () => (await fleet.admin.detail(id)).usage.totalRequests === 3);
    const total = async () =>
      (await fleet.admin.call('GET', `/api-keys/usage?interval=total&consumerApiKeyId=${id}`)).body.rows[0]
        ?.requests;
    await until(async () => (await total()) === 3);
  });
});
