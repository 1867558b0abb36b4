import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { until } from '../support/until.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startInProcessFleet(1);
});
afterAll(() => fleet?.stop());

interface Line {
  readonly event?: string;
  readonly action?: string;
  readonly jobId?: string;
  readonly owner?: string;
  readonly keyIds?: readonly string[];
}

/** The lines of the log about keys that were changed together and that meet a condition, in their order. */
function linesWhere(meets: (line: Line) => boolean): readonly Line[] {
  return (fleet.replicas[0]?.output() ?? '')
    .split('\n')
    .filter((line) => line.includes('"event":"keys_changed"') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as Line)
    .filter(meets);
}

const idsIn = (lines: readonly Line[]) => lines.flatMap(({ keyIds = [] }) => keyIds).toSorted();

describe('the log has the ids of all keys', () => {
  it('that a job deleted', async () => {
    const keys = [
      await fleet.admin.makeKey('a'),
      await fleet.admin.makeKey('b'),
      await fleet.admin.makeKey('c'),
    ];
    const ids = keys.map(({ id }) => id);
    const { body } = await fleet.admin.call('POST', '/api-keys/bulk', { ids, action: 'delete' });
    const lines = () => linesWhere(({ jobId }) => jobId === body.jobId);
    await until(() => idsIn(lines()).length === 3);
    expect(idsIn(lines())).toEqual(ids.toSorted());
    for (const { action } of lines()) expect(action).toBe('delete');
  });

  it('that a job changed, without those that it could not change', async () => {
    const tags = Array.from({ length: 20 }, (_, n) => `tag-${n}`);
    const { id: full } = (await fleet.admin.call('POST', '/consumer-api-key/create', { name: 'full', tags }))
      .body;
    const other = await fleet.admin.makeKey('other');
    const addTo = async (ids: readonly string[]): Promise<string> => {
      const wanted = { ids, action: 'add-tags', tags: ['one-more'] };
      const { jobId } = (await fleet.admin.call('POST', '/api-keys/bulk', wanted)).body;
      const job = async () => (await fleet.admin.call('GET', `/tollgate/job/${jobId}`)).body;
      await until(async () => (await job()).state === 'done');
      expect((await job()).failedCount).toBe(1);
      return jobId;
    };
    const inVain = await addTo([full]);
    const done = await addTo([full, other.id]);
    const of = (id: string) => linesWhere(({ jobId }) => jobId === id);
    await until(() => of(done).length > 0);
    expect(idsIn(of(done))).toEqual([other.id]);
    expect(of(inVain)).toEqual([]);
  });

  it('that a configuration created, changed and deleted', async () => {
    const apply = async (keys: readonly object[]) => {
      const wanted = { config: { keys }, owner: 'logged', prune: true };
      const { body } = await fleet.admin.call('POST', '/tollgate/config/apply', wanted);
      return body.changes.map(({ consumerApiKeyId }: { consumerApiKeyId: string }) => consumerApiKeyId);
    };
    const [kept, gone] = await apply([
      { externalId: 'kept', name: 'kept' },
      { externalId: 'gone', name: 'gone' },
    ]);
    await apply([{ externalId: 'kept', name: 'kept', enabled: false }]);
    const byAction = (wanted: string) =>
      idsIn(linesWhere(({ owner, action }) => owner === 'logged' && action === wanted));
    await until(() => byAction('update').length > 0 && byAction('delete').length > 0);
    expect(byAction('create')).toEqual([kept, gone].toSorted());
    expect(byAction('update')).toEqual([kept]);
    expect(byAction('delete')).toEqual([gone]);
  });

  it('that were imported, in lines that a pipe takes at once', async () => {
    const keys = Array.from({ length: 250 }, (_, n) => ({
      name: `imported ${n}`,
      secretHash: { algorithm: 'sha256', value: createHash('sha256').update(randomBytes(16)).digest('hex') },
    }));
    const { body } = await fleet.admin.call('POST', '/api-keys/import', { keys });
    const ids = body.results.map(({ consumerApiKeyId }: { consumerApiKeyId: string }) => consumerApiKeyId);
    const lines = () => linesWhere(({ action }) => action === 'import');
    await until(() => idsIn(lines()).length === 250);
    expect(idsIn(lines())).toEqual(ids.toSorted());
    for (const line of lines()) expect(JSON.stringify(line).length).toBeLessThan(4096);
  });
});
