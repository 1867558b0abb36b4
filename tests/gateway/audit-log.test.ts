import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Admin } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { type GatewayProcess, isAlive, startGateway } from '../support/gateway.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startInProcessFleet(1);
});
afterAll(() => fleet?.stop());

describe('two replicas that change keys at once, of which one is killed', () => {
  it('leave one chain with an entry for each key that was made, and for no other', async () => {
    const second = await startGateway(fleet.environment);
    const admins = [fleet.admin, new Admin(second.url)];
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

describe('live counters that are reset', () => {
  let relay: TcpRelay;
  let onSent: (commands: string) => void;
  let relayed: GatewayProcess;
  beforeEach(async () => {
    onSent = () => {};
    relay = await TcpRelay.start(portOf(fleet.redisUrl), { onSent: (bytes) => onSent(String(bytes)) });
    relayed = await startGateway({ ...fleet.environment, REDIS_URL: relay.urlOf(fleet.redisUrl) });
  });
  afterEach(async () => {
    if (isAlive(relayed.pid)) await relayed.kill();
    await relay.stop();
  });

  /** A key with a window that is open, and the path that closes it. */
  async function usedKey(name: string): Promise<{ readonly id: string; readonly path: string }> {
    await fleet.admin.makePlan(name, 10, 'hour');
    const { id, secret } = await fleet.admin.makeKey(name, name);
    const path = `/consumer-api-key/${id}/limits`;
    // Another replica's, so that Redis knows the script, and one command is enough.
    await fleet.admin.call('POST', `${path}/reset`, {});
    expect(await statusOf(relayed.url, secret)).toBe(200);
    return { id, path };
  }

  const outcomesOf = async (id: string) =>
    (
      await fleet.admin.call('GET', `/tollgate/audit-log?targetId=${id}&action=limits.reset`)
    ).body.entries.map(({ outcome }: { outcome: string }) => outcome);

  it('have an entry even where the replica is killed right after', async () => {
    const { id, path } = await usedKey('killed');
    // The command that closes the window arrives; its reply does not.
    onSent = (commands) => {
      if (commands.includes(`tg:{${id}}:window:`)) relay.silence();
    };
    const reset = new Admin(relayed.url).call('POST', `${path}/reset`, {}).catch(() => 'killed');
    const isOpen = async () => (await fleet.admin.call('GET', path)).body.limits[0].open;
    await until(async () => !(await isOpen()));
    await relayed.kill();
    expect(await reset).toBe('killed');
    expect(await outcomesOf(id)).toEqual(['success', 'success']);
    const { body } = await fleet.admin.call('GET', '/tollgate/audit-log/verify');
    expect(body).toMatchObject({ valid: true });
  });

  it('have a second entry where Redis does not respond', async () => {
    const { id, path } = await usedKey('away');
    relay.reject();
    const { status } = await new Admin(relayed.url).call('POST', `${path}/reset`, {});
    expect(status).toBe(503);
    expect(await outcomesOf(id)).toEqual(['store_unavailable', 'success', 'success']);
  });
});
