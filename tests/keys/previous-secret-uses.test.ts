import { randomBytes } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { pino } from 'pino';
import { PreviousSecretUses } from '../../src/keys/secrets/previous-secret-uses.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTestRecords } from '../support/records.ts';
import { storeKey } from '../support/sample-records.ts';
import { createMigratedDatabase } from '../support/stores.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';

const USED_AT_MS = Date.UTC(2026, 1, 3, 4, 5, 6);

it('uses of previous secrets noted while Postgres is down are written later', async () => {
  const database = await createMigratedDatabase();
  const relay = await TcpRelay.start(portOf(database.url));
  const records = openTestRecords(relay.urlOf(database.url), { defaultPlanId: null });
  try {
    const key = await storeKey(records);
    const insert = {
      ...{ key_id: key.id, version: 1, origin: 'generated' as const, hint: null, lookup: Buffer.alloc(32) },
      ...{ digest_lookup: randomBytes(32), sealed_secret: null, sealed_digest: null, last_used_at: null },
      ...{ rotated_at: new Date(USED_AT_MS), valid_until: new Date(Date.UTC(2100, 0, 1)) },
    };
    await records.db.insertInto('previous_secrets').values(insert).execute();
    const clock = new ManualClock(USED_AT_MS);
    const uses = new PreviousSecretUses({
      secrets: records.secrets,
      clock,
      log: pino({ level: 'silent' }),
    });
    const lastUse = async () =>
      (await records.db.selectFrom('previous_secrets').select('last_used_at').executeTakeFirstOrThrow())
        .last_used_at;
    relay.reject();
    uses.note(key.id, 1);
    await uses.stop();
    relay.pass(portOf(database.url));
    expect(await lastUse()).toBeNull();
    await uses.stop();
    expect(await lastUse()).toEqual(new Date(USED_AT_MS));
  } finally {
    await records.close();
    await relay.stop();
    await database.drop();
  }
});
