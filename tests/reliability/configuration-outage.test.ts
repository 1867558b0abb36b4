import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Admin } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { gatewaySettings, type RunningGateway } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { createMigratedDatabase, queryDatabase, type TestDatabase, testRedisUrl } from '../support/stores.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { startBackend, type TestBackend } from './support/test-backend.ts';

/** `request`: Postgres goes down before it gets the message; `reply`: it carries it out, and the reply is lost. */
type Lost = 'request' | 'reply';

let database: TestDatabase;
let relay: TcpRelay;
let backend: TestBackend;
let environment: Readonly<Record<string, string>>;
let gateway: RunningGateway | undefined;
/** Postgres goes down at the first message or reply for which this holds, which is lost. */
let isFatal: ((bytes: string, kind: Lost) => boolean) | undefined;

beforeAll(async () => {
  database = await createMigratedDatabase();
  relay = await TcpRelay.start(portOf(database.url), {
    onSent: (bytes) => void isOver(bytes, 'request'),
    rewrite: (bytes) => (isOver(bytes, 'reply') ? Buffer.alloc(0) : bytes),
  });
  backend = await startBackend();
  environment = gatewaySettings(backend.url, relay.urlOf(database.url), testRedisUrl());
});
afterEach(async () => {
  isFatal = undefined;
  isBack();
  await gateway?.stop();
  gateway = undefined;
});
afterAll(async () => {
  await backend?.stop();
  await relay?.stop();
  await database?.drop();
});

function isOver(bytes: Buffer, kind: Lost): boolean {
  if (isFatal?.(bytes.toString('latin1'), kind) !== true) return false;
  isFatal = undefined;
  relay.reject();
  return true;
}

const isBack = () => relay.pass(portOf(database.url));

/** Two plans and two keys, one of which gets a secret. */
function configurationOf(owner: string) {
  return {
    plans: [
      { rateLimitId: `${owner}-gold`, limit: 10, period: 'hour' },
      { rateLimitId: `${owner}-free`, limit: 5, period: 'hour' },
    ],
    keys: [
      { externalId: `${owner}-app`, name: 'app', rateLimitId: `${owner}-gold` },
      {
        externalId: `${owner}-batch`,
        name: 'batch',
        secretHash: { algorithm: 'sha256', value: Buffer.alloc(32, owner).toString('hex') },
      },
    ],
  };
}

/** Read past the gateway: plans, keys and audit entries of an owner. */
async function storedOf(owner: string): Promise<readonly number[]> {
  const [row = {}] = await queryDatabase<Record<string, string>>(
    database.url,
    `SELECT (SELECT count(*) FROM plans WHERE managed_by = $1) AS plans,
            (SELECT count(*) FROM consumer_keys WHERE managed_by = $1) AS keys,
            (SELECT count(*) FROM audit_log WHERE target_id LIKE $1 || '-%'
               OR target_id IN (SELECT id FROM consumer_keys WHERE managed_by = $1)) AS entries`,
    [owner],
  );
  return Object.values(row).map(Number);
}

const NOTHING = [0, 0, 0];
const EVERYTHING = [2, 2, 4];

describe.each<Lost>(['request', 'reply'])(
  'POST /tollgate/config/apply whose Postgres goes down (%s lost)',
  (what) => {
    it('at any message changes all or nothing, says so, and is done once when sent again', async () => {
      gateway = await startInProcess(environment);
      const admin = new Admin(gateway.url);
      const outcomes = new Set<string>();
      for (let message = 1, wasReached = true; wasReached; message += 1) {
        const owner = `${what}${message}`;
        const apply = () =>
          admin.call(
            'POST',
            '/tollgate/config/apply',
            { owner, config: configurationOf(owner) },
            { 'idempotency-key': owner },
          );
        let count = 0;
        isFatal = () => {
          count += 1;
          return count === message;
        };
        const first = await apply();
        wasReached = isFatal === undefined;
        isFatal = undefined;
        isBack();

        const stored = await storedOf(owner);
        outcomes.add(`${first.status} ${stored}`);
        if (first.status !== 200) {
          expect(first.body).toMatchObject({ code: 'store_unavailable' });
          expect([first.status, first.headers.get('retry-after')]).toEqual([503, '1']);
        }
        // A reply of the commit that is lost leaves open which of the two it is.
        expect([NOTHING, EVERYTHING]).toContainEqual(stored);

        let again = first;
        await until(async () => {
          again = await apply();
          return again.status === 200;
        });
        expect(await storedOf(owner)).toEqual(EVERYTHING);
        expect(again.body.secrets).toHaveLength(1);
        expect(await statusOf(gateway.url, again.body.secrets[0].secret)).toBe(200);
      }
      // Both were met: a change that was undone, and one that went through.
      expect(outcomes).toContain(`503 ${NOTHING}`);
      expect(outcomes).toContain(`200 ${EVERYTHING}`);
    });
  },
);

describe('CONFIG_FILE while Postgres goes down', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'tollgate-config-outage-'));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  it.each<[string, Lost, RegExp, readonly number[]]>([
    ['as keys are written', 'request', /INSERT INTO "consumer_keys"/, NOTHING],
    ['before the commit', 'request', /commit\0/i, NOTHING],
    ['and takes the reply to the commit along', 'reply', /COMMIT\0/, EVERYTHING],
  ])('%s is applied once as soon as it is back', async (where, what, fatal, storedThen) => {
    const owner = `file-${where.replaceAll(' ', '-')}`;
    const { plans, keys } = configurationOf(owner);
    const file = join(directory, `${owner}.json`);
    await writeFile(file, JSON.stringify({ plans, keys }));
    let isApplying = false;
    isFatal = (bytes, kind) => {
      isApplying ||= kind === 'request' && bytes.includes(`${owner}-gold`);
      return isApplying && kind === what && fatal.test(bytes);
    };
    gateway = await startInProcess(
      { ...environment, CONFIG_FILE: file, CONFIG_OWNER: owner },
      { isReady: false },
    );
    await until(() => isFatal === undefined);
    await until(() => gateway?.output().includes('could not be prepared; it is tried again') === true);
    expect((await fetch(`${gateway.opsUrl}/readyz`)).status).toBe(503);
    expect(await storedOf(owner)).toEqual(storedThen);

    isBack();
    await until(async () => (await fetch(`${gateway?.opsUrl}/readyz`)).ok);
    expect(await storedOf(owner)).toEqual(EVERYTHING);
  });
});
