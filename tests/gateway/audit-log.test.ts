import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Admin } from '../support/admin.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet(2);
}, 60_000);
afterAll(() => fleet?.stop());

describe('two replicas that change keys at once, of which one is killed', () => {
  it('leave one chain with an entry for each key that was made, and for no other', async () => {
    const [first, second] = fleet.replicas;
    if (first === undefined || second === undefined) throw new Error('no replicas');
    const admins = [new Admin(first.url), new Admin(second.url)];
    const changes = Array.from({ length: 60 }, async (_, n) => {
      const admin = admins[n % 2] ?? fleet.admin;
      await admin.call('POST', '/consumer-api-key/create', { name: `key ${n}` }).catch(() => {});
      if (n === 21) await second.kill();
    });
    await Promise.all(changes);
    const { apiKeys } = (await fleet.admin.call('GET', '/consumer-api-key')).body;
    const log = (await fleet.admin.call('GET', '/tollgate/audit-log?action=key.create')).body.entries;
    const made = apiKeys.map((key: { consumerApiKeyId: string }) => key.consumerApiKeyId);
    const logged = log.map(({ target }: { target: { id: string } }) => target.id);
    expect(made.length).toBeGreaterThanOrEqual(30);
    expect(logged.toSorted()).toEqual(made.toSorted());
    const { body } = await fleet.admin.call('GET', '/tollgate/audit-log/verify');
    expect(body).toMatchObject({ valid: true, entries: made.length });
  });
});
