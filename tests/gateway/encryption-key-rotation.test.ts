import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Admin } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { ENCRYPTION_KEY, ROOT_TOKEN, spawnNode } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { queryDatabase } from '../support/stores.ts';

const ROTATE = resolve(import.meta.dirname, '../../src/cli/rotate-encryption-key.ts');
const NEW_KEY = Buffer.alloc(32, 8).toString('base64');
const LOST_KEY = Buffer.alloc(32, 10).toString('base64');

let fleet: Fleet;

beforeAll(async () => {
  fleet = await startInProcessFleet(1);
});
afterAll(() => fleet?.stop());

async function rotate(
  encryptionKeys: string,
  databaseUrl = fleet.databaseUrl,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const { child, output } = spawnNode(ROTATE, {
    DATABASE_URL: databaseUrl,
    ENCRYPTION_KEY: encryptionKeys,
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output: output() };
}

/** A session that no encryption key opens. */
async function addExpiredSession(databaseUrl: string, id: string): Promise<void> {
  await queryDatabase(
    databaseUrl,
    `INSERT INTO sign_in_sessions
      (id, kind, subject, name, scopes, only_tags, address, lookup, sealed, created_at, last_used_at, renew_at, expires_at)
    VALUES ($1, 'browser', 'alice', 'Alice', '{keys:read}', '{}', '127.0.0.1', $2, $3, now(), now(), now(), now() - interval '1 hour')`,
    [id, Buffer.alloc(32), Buffer.alloc(64, 1)],
  );
}

/** Copies of a key, which have its seal. Their ids follow that of the key. */
async function addCopies(databaseUrl: string, keyId: string, count: number): Promise<void> {
  await queryDatabase(
    databaseUrl,
    `INSERT INTO consumer_keys (id, name, created_at, updated_at, secret_version, lookup, sealed_secret)
    SELECT id || number, name, created_at, updated_at, secret_version, sha256(('copy' || number)::bytea), sealed_secret
    FROM consumer_keys, generate_series(1, $2::int) AS number WHERE id = $1`,
    [keyId, count],
  );
}

/** What the runbook says that the command writes when it finds nothing to do. */
async function documentedOutput(): Promise<readonly string[]> {
  const [step = ''] =
    /^4\. Run it once more\.[\s\S]*?^5\./m.exec(await readFile('docs/runbook.md', 'utf8')) ?? [];
  return [...step.matchAll(/`(".*?)`/g)].map(([, text = '']) => text);
}

describe('rotating the encryption key', () => {
  it('keeps every key valid at each step, and ends without the old encryption key', async () => {
    const old = await fleet.admin.makeKey('made before');
    const both = await startInProcess({
      ...fleet.environment,
      ENCRYPTION_KEY: `${NEW_KEY},${ENCRYPTION_KEY}`,
    });
    try {
      const admin = new Admin(both.url);
      const made = await admin.makeKey('made between');
      for (const { id, secret } of [old, made]) {
        expect(await statusOf(both.url, secret)).toBe(200);
        expect((await admin.detail(id)).secret).toBe(secret);
      }
      const { count, lastHash } = (await admin.call('GET', '/tollgate/audit-log/verify')).body;
      const run = await rotate(`${NEW_KEY},${ENCRYPTION_KEY}`);
      expect(run.code).toBe(0);
      expect(run.output).toContain('"rotated":1,"current":1,"unkept":0');
      expect(run.output).toContain('"auditKeys":1');
      expect(await statusOf(both.url, old.secret)).toBe(200);

      const rotated = await startInProcess({ ...fleet.environment, ENCRYPTION_KEY: NEW_KEY });
      for (const { id, secret } of [old, made]) {
        expect(await statusOf(rotated.url, secret)).toBe(200);
        expect((await new Admin(rotated.url).detail(id)).secret).toBe(secret);
      }
      const path = `/tollgate/audit-log/verify?expectCount=${count}&expectHash=${lastHash}`;
      const { body } = await new Admin(rotated.url).call('GET', path);
      expect(body).toMatchObject({ valid: true, expectation: 'met' });
      await rotated.stop();
      expect((await rotate(`${NEW_KEY},${ENCRYPTION_KEY}`)).output).toContain('"rotated":0,"current":2');
    } finally {
      await both.stop();
    }
  });

  it('makes up for a replica that still sealed with the old key, and says when none did', async () => {
    const late = await startInProcessFleet(1, { ENCRYPTION_KEY: `${ENCRYPTION_KEY},${NEW_KEY}` });
    const rotateLate = () => rotate(`${NEW_KEY},${ENCRYPTION_KEY}`, late.databaseUrl);
    try {
      const first = await late.admin.makeKey('made before');
      await rotateLate();
      const second = await late.admin.makeKey('made by a replica that ends');
      expect((await rotateLate()).output).toContain('"rotated":1,"current":1');
      const { output } = await rotateLate();
      const said = await documentedOutput();
      expect(said).toHaveLength(3);
      for (const part of said) expect(output).toContain(part);

      const gateway = await startInProcess({ ...late.environment, ENCRYPTION_KEY: NEW_KEY });
      for (const { secret } of [first, second]) expect(await statusOf(gateway.url, secret)).toBe(200);
      const { body } = await new Admin(gateway.url).call('GET', '/tollgate/audit-log/verify');
      expect(body).toMatchObject({ valid: true, count: 2 });
      await gateway.stop();
    } finally {
      await late.stop();
    }
  });

  it('keeps both secrets of a rotated key, and secrets known only by their hash', async () => {
    const { admin, replicas } = fleet;
    const { id, secret: previous } = await admin.makeKey('with two secrets');
    const rotated = await admin.call('POST', `/consumer-api-key/${id}/rotate`, { graceSeconds: 3600 });
    const secrets = [previous, rotated.body.secret, 'a-secret-of-another-gateway', 'another-secret-of-its'];
    const keys = secrets.slice(2).map((secret, index) => ({
      name: `moved here ${index}`,
      secretHash: { algorithm: 'sha256', value: createHash('sha256').update(secret).digest('hex') },
    }));
    expect((await admin.call('POST', '/api-keys/import', { keys })).status).toBe(200);
    const moved = await admin.call('POST', '/api-keys/find', { secret: secrets[2] });
    await admin.call('POST', `/consumer-api-key/${moved.body.consumerApiKeyId}/rotate`, {
      graceSeconds: 3600,
    });
    for (const secret of secrets) expect(await statusOf(replicas[0]?.url ?? '', secret)).toBe(200);
    expect((await rotate(`${NEW_KEY},${ENCRYPTION_KEY}`)).code).toBe(0);
    const gateway = await startInProcess({ ...fleet.environment, ENCRYPTION_KEY: NEW_KEY });
    for (const secret of secrets) expect(await statusOf(gateway.url, secret)).toBe(200);
    const again = await new Admin(gateway.url).call('POST', '/api-keys/import', { keys });
    expect(again).toMatchObject({ status: 409 });
    await gateway.stop();
  });

  it('keeps the responses that are to be repeated', async () => {
    const create = async (url: string) => {
      const response = await fetch(`${url}/consumer-api-key/create`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${ROOT_TOKEN}`,
          'content-type': 'application/json',
          'idempotency-key': 'across-the-rotation',
        },
        body: JSON.stringify({ name: 'made once' }),
      });
      return { status: response.status, body: await response.json() };
    };
    const first = await create(fleet.replicas[0]?.url ?? '');
    expect(first.status).toBe(201);
    expect((await rotate(`${NEW_KEY},${ENCRYPTION_KEY}`)).output).toContain('"responses":1');
    const rotated = await startInProcess({ ...fleet.environment, ENCRYPTION_KEY: NEW_KEY });
    expect(await create(rotated.url)).toEqual(first);
    await rotated.stop();
  });

  it('keeps admin tokens, both secrets of one that is being rotated', async () => {
    const { admin, replicas } = fleet;
    const whoami = async (url: string, secret: string) =>
      (await fetch(`${url}/tollgate/whoami`, { headers: { authorization: `Bearer ${secret}` } })).status;
    const token = await admin.call('POST', '/tollgate/admin-token/create', {
      ...{ name: 'of a script', scopes: ['keys:read'] },
    });
    const path = `/tollgate/admin-token/${token.body.adminTokenId}`;
    const rotated = await admin.call('POST', `${path}/rotate`, { graceSeconds: 3600 });
    const secrets = [token.body.secret, rotated.body.secret];
    for (const secret of secrets) expect(await whoami(replicas[0]?.url ?? '', secret)).toBe(200);
    const stranger = await startInProcess({ ...fleet.environment, ENCRYPTION_KEY: NEW_KEY });
    for (const secret of secrets) expect(await whoami(stranger.url, secret)).toBe(401);
    expect(stranger.output()).toContain('ENCRYPTION_KEY does not open these admin tokens');
    expect(stranger.output()).toContain(token.body.adminTokenId);
    await stranger.stop();
    const run = await rotate(`${NEW_KEY},${ENCRYPTION_KEY}`);
    expect(run.code).toBe(0);
    expect(run.output).toContain('"adminTokens":{"rotated":2,"current":0,"unkept":0}');
    const gateway = await startInProcess({ ...fleet.environment, ENCRYPTION_KEY: NEW_KEY });
    for (const secret of secrets) expect(await whoami(gateway.url, secret)).toBe(200);
    expect(gateway.output()).not.toContain('does not open these admin tokens');
    await gateway.stop();
    // The version is the same: nobody has changed the token.
    expect((await admin.call('GET', path)).body).not.toHaveProperty('secret');
    await admin.call('DELETE', path);
  });

  it('says that admin tokens whose digest was not kept hold it up', async () => {
    const { admin } = fleet;
    const { body } = await admin.call('POST', '/tollgate/admin-token/create', {
      ...{ name: 'older', scopes: ['keys:read'] },
    });
    await queryDatabase(fleet.databaseUrl, 'UPDATE admin_tokens SET sealed_digest = NULL');
    const run = await rotate(`${NEW_KEY},${ENCRYPTION_KEY}`);
    expect(run.code).toBe(2);
    expect(run.output).toContain('admin tokens made before their digests were kept');
    await admin.call('DELETE', `/tollgate/admin-token/${body.adminTokenId}`);
  });

  it('names what it can not open, and seals everything else again', async () => {
    const store = await startInProcessFleet(1);
    const startWith = (...keys: string[]) =>
      startInProcess({ ...store.environment, ENCRYPTION_KEY: keys.join() });
    const makeBoth = async (url: string) => {
      const admin = new Admin(url);
      const key = await admin.makeKey('a key');
      const token = await admin.call('POST', '/tollgate/admin-token/create', {
        ...{ name: 'a script', scopes: ['keys:read'] },
      });
      return { keyId: key.id, secret: key.secret, tokenId: token.body.adminTokenId };
    };
    try {
      const withLost = await startWith(LOST_KEY, ENCRYPTION_KEY);
      const lost = await makeBoth(withLost.url);
      await withLost.stop();
      const withOld = await startWith(ENCRYPTION_KEY, LOST_KEY);
      const kept = await makeBoth(withOld.url);
      await withOld.stop();
      await addExpiredSession(store.databaseUrl, 'ses_expired');
      await addCopies(store.databaseUrl, lost.keyId, 1000);

      const run = await rotate(`${NEW_KEY},${ENCRYPTION_KEY}`, store.databaseUrl);
      expect(run.code).toBe(1);
      expect(run.output).toContain('"rotated":1,"current":0,"unkept":0');
      expect(run.output).toContain('"adminTokens":{"rotated":1,"current":0,"unkept":0}');
      const line = run.output.split('\n').find((each) => each.includes('no key of ENCRYPTION_KEY opens'));
      const named = JSON.parse(line ?? '{}');
      expect(named).toMatchObject({ unreadable: 1002, adminTokens: [lost.tokenId] });
      expect(named.keys).toContain(lost.keyId);
      expect(named.keys).toHaveLength(1000);
      expect(run.output).not.toContain('ses_expired');
      const rotated = await startWith(NEW_KEY);
      expect(await statusOf(rotated.url, kept.secret)).toBe(200);
      await rotated.stop();
    } finally {
      await store.stop();
    }
  });

  it('says which keys hold it up, and what it needs', async () => {
    const once = await startInProcess({
      ...fleet.environment,
      SECRET_REVEAL: 'once',
      ENCRYPTION_KEY: NEW_KEY,
    });
    const { secret } = await new Admin(once.url).makeKey('shown once');
    expect(await statusOf(once.url, secret)).toBe(200);
    await once.stop();
    const run = await rotate(`${ENCRYPTION_KEY},${NEW_KEY}`);
    expect(run.code).toBe(2);
    expect(run.output).toContain('"unkept":1');
    expect((await rotate(NEW_KEY)).code).toBe(78);
    expect((await rotate(NEW_KEY)).output).not.toContain(ROOT_TOKEN);
  });
});
