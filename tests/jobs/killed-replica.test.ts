import { expect, it } from '@jest/globals';
import pg from 'pg';
import { Admin } from '../support/admin.ts';
import { startFleet } from '../support/fleet.ts';
import { startGateway } from '../support/gateway.ts';
import { until } from '../support/until.ts';

const KEYS = 8;
const DONE_BEFORE = 3;

it('A job goes on after its replica was killed, and changes each key once', async () => {
  const fleet = await startFleet(1);
  const database = new pg.Client({ connectionString: fleet.databaseUrl });
  await database.connect();
  try {
    const ids: string[] = [];
    for (let made = 0; made < KEYS; made += 1) ids.push((await fleet.admin.makeKey(`key ${made}`)).id);
    // The job waits for this row in the middle of its change.
    await database.query('BEGIN');
    await database.query('SELECT FROM consumer_keys WHERE id = $1 FOR UPDATE', [ids[DONE_BEFORE]]);
    const begun = await fleet.admin.call('POST', '/api-keys/bulk', { ids, action: 'disable' });
    const path = `/tollgate/job/${begun.body.jobId}`;
    await until(async () => (await fleet.admin.call('GET', path)).body.done === DONE_BEFORE);
    await fleet.replicas[0]?.kill();
    await database.query('ROLLBACK');
    // As if the time had passed in which the killed replica has the job.
    await until(async () => {
      const { rowCount } = await database.query(
        `UPDATE jobs SET held_until = now() FROM (SELECT count(*) AS others FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend') AS connections
        WHERE others = 0`,
      );
      return rowCount === 1;
    });

    const next = await startGateway(fleet.environment);
    try {
      const admin = new Admin(next.url);
      await until(async () => (await admin.call('GET', path)).body.state !== 'running');
      expect((await admin.call('GET', path)).body).toMatchObject({
        state: 'done',
        done: KEYS,
        failedCount: 0,
      });
      const log = await admin.call('GET', `/tollgate/audit-log?jobId=${begun.body.jobId}`);
      const targets: readonly { type: string; id: string }[] = log.body.entries.map(
        (entry: { target: object }) => entry.target,
      );
      const changed = targets.filter(({ type }) => type === 'key').map(({ id }) => id);
      expect(changed.toSorted()).toEqual(ids.toSorted());
    } finally {
      await next.stop();
    }
  } finally {
    await database.end();
    await fleet.stop();
  }
});
