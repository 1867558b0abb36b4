import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { Client } from 'pg';
import { messagesOf } from '../../src/client/event-stream.ts';
import { rotateSealedHandovers } from '../../src/keys/handovers/rotate-sealed-handovers.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { SecretVault } from '../../src/secrets/secret-vault.ts';
import type { Managed } from '../support/admin.ts';
import { requireDocumented } from '../support/documented-responses.ts';
import { EVENT_SCHEMAS } from '../support/event-schemas.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { ENCRYPTION_KEY, ROOT_TOKEN, type RunningGateway } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { limitDeletions } from '../support/limit-deletions.ts';
import { openTestRecords } from '../support/records.ts';
import { until } from '../support/until.ts';

const PUBLIC_URL = 'https://api.example.com';
const PAGE = `${PUBLIC_URL}/tollgate/self/handover`;

let fleet: Fleet;
let database: Client;
beforeAll(async () => {
  fleet = await startInProcessFleet(2, { PUBLIC_URL });
  database = new Client(fleet.databaseUrl);
  await database.connect();
});
afterAll(async () => {
  await database?.end();
  await fleet?.stop();
});

/** What the page of a link asks for. */
async function ask(
  action: 'open' | 'reveal',
  token: string,
  { replica = 0, headers = {} }: { replica?: number; headers?: Record<string, string> } = {},
): Promise<Managed> {
  const url = `${fleet.replicas[replica]?.url}/tollgate/self/handover/${action}`;
  const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers } };
  const response = await fetch(url, { ...init, body: JSON.stringify({ token }) });
  const body = await response.json();
  const { status, headers: received } = response;
  const type = received.get('content-type') ?? '';
  requireDocumented('POST', new URL(url).pathname, { status, type, body });
  return { status, headers: received, body };
}

async function makeLink(keyId: string, body: object = { ttlSeconds: 3600 }): Promise<Managed> {
  return fleet.admin.call('POST', `/consumer-api-key/${keyId}/handover`, body);
}

function tokenOf({ body }: Managed): string {
  const { url } = body.handover ?? body;
  expect(url).toMatch(/^https:\/\/api\.example\.com\/tollgate\/self\/handover#tgh_[0-9A-Za-z]{43}$/);
  return url.slice(PAGE.length + 1);
}

async function keyWithLink(
  name: string,
): Promise<{ id: string; secret: string; token: string; handoverId: string }> {
  const { id, secret } = await fleet.admin.makeKey(name);
  const made = await makeLink(id);
  expect([made.status, made.headers.get('location')]).toEqual([
    201,
    `/consumer-api-key/${id}/handover/${made.body.handoverId}`,
  ]);
  return { id, secret, token: tokenOf(made), handoverId: made.body.handoverId };
}

/** As every instant of the interface is written. */
const WHOLE_SECOND = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);

function gone(state: string, usedAt: unknown = null): object {
  return { status: 410, body: { code: 'handover_gone', state, usedAt, error: expect.any(String) } };
}

async function keptSecrets(keyId: string): Promise<number> {
  const { rowCount } = await database.query('select from handover_secrets where key_id = $1', [keyId]);
  return rowCount ?? -1;
}

describe('a hand-over link', () => {
  it('shows the secret once, whatever the number of replicas that are asked at the same time', async () => {
    const { id, secret, token } = await keyWithLink('Raced');
    expect(await ask('open', token, { replica: 1 })).toMatchObject({
      status: 200,
      body: { state: 'open', name: 'Raced', note: null, usedAt: null },
    });
    const responses = await Promise.all(
      Array.from({ length: 10 }, (_, index) => ask('reveal', token, { replica: index % 2 })),
    );
    const shown = responses.filter(({ status }) => status === 200);
    expect(shown.map(({ body }) => body)).toEqual([{ consumerApiKeyId: id, name: 'Raced', secret }]);
    expect(shown[0]?.headers.get('cache-control')).toBe('no-store');
    for (const other of responses.filter((response) => response !== shown[0]))
      expect(other).toMatchObject(gone('used', WHOLE_SECOND));
    expect(await ask('open', token)).toMatchObject({
      status: 200,
      body: { state: 'used', name: null, note: null, usedAt: WHOLE_SECOND },
    });
    expect(await keptSecrets(id)).toBe(0);
  });

  it('leaves one entry in the audit log, with the address and without the token or the secret', async () => {
    const { id, secret, token, handoverId } = await keyWithLink('Audited');
    await ask('reveal', token);
    await ask('reveal', token);
    const { rows } = await database.query(
      `select action, actor_type, actor_id, address, changes, audit_log::text as whole from audit_log
       where target_id = $1 and action like '%hand%' order by sequence`,
      [id],
    );
    expect(rows).toMatchObject([
      { action: 'key.offer-handover', actor_type: 'root' },
      { action: 'key.hand-over', actor_type: 'key', actor_id: id, address: '127.0.0.1' },
    ]);
    for (const { whole } of rows) for (const text of [secret, token]) expect(whole).not.toContain(text);
    expect(JSON.stringify(rows[1].changes)).toContain(handoverId);
  });

  it.each([
    { first: 'open', second: 'reveal' },
    { first: 'reveal', second: 'open' },
  ] as const)(
    'leaves one log line, without its token, where it is used and then opened: $first',
    async (again) => {
      const { id, secret, token, handoverId } = await keyWithLink('Opened again');
      const lines = () =>
        (fleet.replicas[0]?.output() ?? '').split('\n').filter((line) => line.includes(handoverId));
      const reused = () => lines().filter((line) => line.includes('"event":"handover_reused"'));
      await ask('open', token);
      await ask('reveal', token);
      expect(reused()).toEqual([]);
      await ask(again.first, token);
      await until(() => reused().length > 0);
      await ask(again.second, token);
      // A line of a later request comes after those of earlier ones.
      const next = await keyWithLink('Revealed later');
      await ask('reveal', next.token);
      await until(() => fleet.replicas[0]?.output().includes(next.handoverId) === true);
      expect(reused().map((line) => JSON.parse(line))).toMatchObject([{ level: 40, keyId: id, handoverId }]);
      for (const line of lines()) for (const text of [secret, token]) expect(line).not.toContain(text);
    },
  );

  it('sends an event, which is as its schema says', async () => {
    const { id, token, handoverId } = await keyWithLink('Announced');
    const type = 'tollgate.key.handed_over';
    const { body } = await fetch(`${fleet.replicas[0]?.url}/tollgate/events?type=${type}`, {
      headers: { authorization: `Bearer ${ROOT_TOKEN}` },
    });
    if (body === null) throw new Error('the stream has no body');
    const messages = messagesOf(body.pipeThrough(new TextDecoderStream()));
    await ask('reveal', token, { replica: 1 });
    const schema = JSON.parse(await readFile(new URL(`${type}.json`, EVENT_SCHEMAS), 'utf8'));
    const validate = new Ajv2020({ validateFormats: false }).compile(schema);
    for await (const { data } of messages) {
      if (data === '') continue;
      const event = JSON.parse(data);
      validate(event);
      expect([event.type, validate.errors]).toEqual([type, null]);
      expect(data).toContain(id);
      expect(data).toContain(handoverId);
      expect(data).not.toContain(token);
      return;
    }
    throw new Error('the stream ended without the event');
  });

  it('is not used up by requests that read, and its page is static and strict', async () => {
    const { secret, token } = await keyWithLink('Previewed');
    for (const method of ['GET', 'HEAD', 'OPTIONS']) {
      for (const path of ['', '/open', '/reveal']) {
        const url = `${fleet.replicas[0]?.url}/tollgate/self/handover${path}?token=${token}`;
        const response = await fetch(url, { method });
        expect(await response.text()).not.toContain(secret);
        if (path !== '' || method === 'OPTIONS') expect(response.status).toBe(405);
        else {
          expect(response.headers.get('cache-control')).toBe('no-store');
          expect(response.headers.get('referrer-policy')).toBe('no-referrer');
          expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
        }
      }
    }
    for (const path of ['/', '/Open', '/assets/none.js', '/assets/handover.html', '/open/']) {
      const url = `${fleet.replicas[0]?.url}/tollgate/self/handover${path}`;
      expect([path, (await fetch(url)).status]).toEqual([path, 404]);
    }
    expect((await ask('reveal', token)).body.secret).toBe(secret);
  });

  it('keeps nothing for an Idempotency-Key: its repetition shows no secret', async () => {
    const { token } = await keyWithLink('Repeated');
    const headers = { 'idempotency-key': 'again' };
    const before = await database.query('select from idempotent_responses');
    expect((await ask('reveal', token, { headers })).status).toBe(200);
    expect(await ask('reveal', token, { headers })).toMatchObject(gone('used', expect.any(String)));
    expect((await database.query('select from idempotent_responses')).rowCount).toBe(before.rowCount);
  });

  it.each([
    ['key_deleted', async (id: string) => fleet.admin.deleteKey(id), 0],
    ['key_rotated', async (id: string) => rotate(id), 1],
    ['key_disabled', async (id: string) => patch(id, { enabled: false }), 1],
    ['revoked', async (id: string, link: string) => revoke(id, link), 0],
    ['expired', async (id: string) => expire('handovers', 'key_id', id), undefined],
    ['key_expired', async (id: string) => expire('consumer_keys', 'id', id), 1],
  ])('says %s, and shows no secret then', async (state, end, kept) => {
    const { id, token, handoverId } = await keyWithLink(`Ends: ${state}`);
    await end(id, handoverId);
    expect(await ask('reveal', token)).toMatchObject(gone(state));
    expect((await ask('open', token)).body).toMatchObject({ state, name: null });
    // What an expired link keeps is deleted from time to time.
    if (kept !== undefined) expect(await keptSecrets(id)).toBe(kept);
  });

  it('of a key whose rotation is undone, or that is enabled again, works again', async () => {
    const { id, secret, token } = await keyWithLink('Undone');
    await rotate(id);
    expect((await ask('open', token)).body.state).toBe('key_rotated');
    await fleet.admin.call('POST', `/consumer-api-key/${id}/end-rotation`, { keep: 'previous' });
    await patch(id, { enabled: false });
    expect(await ask('reveal', token)).toMatchObject(gone('key_disabled'));
    await patch(id, { enabled: true });
    expect((await ask('reveal', token)).body.secret).toBe(secret);
  });

  it('that is unknown is 404 alike for every text', async () => {
    for (const token of ['x', `tgh_${'a'.repeat(43)}`, `tgh_${'a'.repeat(42)}-`, '../'])
      expect(await ask('reveal', token)).toMatchObject({ status: 404, body: { code: 'handover_not_found' } });
    expect(await ask('reveal', 'x'.repeat(257))).toMatchObject({ status: 400 });
  });
});

describe('the creation and the rotation of a key', () => {
  it('hand the secret over by a link in place of the response', async () => {
    const body = { name: 'Handed over', handover: { ttlSeconds: 60, note: 'Hello <b>you</b>' } };
    const made = await fleet.admin.call('POST', '/consumer-api-key/create', body);
    expect(made.body).toEqual({
      id: expect.any(String),
      name: 'Handed over',
      createdAt: expect.any(String),
      handover: { handoverId: expect.any(String), url: expect.any(String), expiresAt: expect.any(String) },
    });
    expect((await ask('open', tokenOf(made))).body.note).toBe('Hello <b>you</b>');
    const first = (await ask('reveal', tokenOf(made))).body.secret;
    const path = `/consumer-api-key/${made.body.id}`;
    const rotated = await fleet.admin.call('POST', `${path}/rotate`, {
      graceSeconds: 0,
      handover: { ttlSeconds: 60 },
    });
    expect('secret' in rotated.body).toBe(false);
    const second = (await ask('reveal', tokenOf(rotated))).body.secret;
    expect(second).not.toBe(first);
    expect((await fleet.admin.detail(made.body.id)).secret).toBe(second);
    const list = await fleet.admin.call('GET', `${path}/handover?limit=1`);
    expect(list.body.handovers).toMatchObject([{ state: 'used', note: null }]);
    const next = await fleet.admin.call('GET', `${path}/handover?cursor=${list.body.nextCursor}`);
    expect(next.body).toMatchObject({ handovers: [{ note: 'Hello <b>you</b>' }] });
    expect(JSON.stringify([list.body, next.body])).not.toContain('tgh_');
  });

  it('are rejected, as a link is, for a note with half a surrogate pair', async () => {
    const { id } = await fleet.admin.makeKey('Not noted');
    const handover = { ttlSeconds: 60, note: 'half \ud800' };
    const path = `/consumer-api-key/${id}`;
    const rejected = [
      await makeLink(id, handover),
      await fleet.admin.call('POST', '/consumer-api-key/create', { name: 'Not noted', handover }),
      await fleet.admin.call('POST', `${path}/rotate`, { graceSeconds: 0, handover }),
    ];
    expect(rejected.map(({ status }) => status)).toEqual([400, 400, 400]);
    expect((await makeLink(id, { ttlSeconds: 60, note: 'whole 🗝' })).status).toBe(201);
  });

  it('make nothing if the link can not be made', async () => {
    const body = { name: 'Never made', handover: { ttlSeconds: 604_801 } };
    expect((await fleet.admin.call('POST', '/consumer-api-key/create', body)).status).toBe(400);
    const { id } = await fleet.admin.makeKey('Not rotated');
    await database.query('alter table handovers rename to handovers_away');
    try {
      const handover = { ttlSeconds: 60 };
      const made = await fleet.admin.call('POST', '/consumer-api-key/create', {
        name: 'Never made',
        handover,
      });
      const rotated = await fleet.admin.call('POST', `/consumer-api-key/${id}/rotate`, {
        graceSeconds: 0,
        handover,
      });
      expect([made.status, rotated.status]).toEqual([503, 503]);
    } finally {
      await database.query('alter table handovers_away rename to handovers');
    }
    const { body: found } = await fleet.admin.call('GET', '/consumer-api-key?q=Never%20made');
    expect([found.apiKeys, (await fleet.admin.detail(id)).rotation]).toEqual([[], null]);
  });
});

describe('a gateway that shows secrets once', () => {
  it('makes links with create and rotate, and none later', async () => {
    await withReplica({ SECRET_REVEAL: 'once' }, async (gateway) => {
      const send = async (path: string, body: object): Promise<Managed> => {
        const headers = { authorization: `Bearer ${ROOT_TOKEN}`, 'content-type': 'application/json' };
        const init = { method: 'POST', headers, body: JSON.stringify(body) };
        const response = await fetch(`${gateway.url}${path}`, init);
        return { status: response.status, headers: response.headers, body: await response.json() };
      };
      const handover = { ttlSeconds: 60 };
      const made = await send('/consumer-api-key/create', { name: 'Shown once', handover });
      const path = `/consumer-api-key/${made.body.id}`;
      const later = await send(`${path}/handover`, handover);
      expect(later).toMatchObject({ status: 409, body: { code: 'secret_not_available' } });
      const first = (await ask('reveal', tokenOf(made))).body.secret;
      const rotated = await send(`${path}/rotate`, { graceSeconds: 60, handover });
      const second = (await ask('reveal', tokenOf(rotated))).body.secret;
      expect(new Set([first, second, undefined]).size).toBe(3);
      for (const each of [made, rotated]) expect('secret' in each.body).toBe(false);
      expect((await send(`${path}/handover`, handover)).body.code).toBe('secret_not_available');
    });
  });
});

describe('a gateway whose management has another port', () => {
  it('has the page and its requests on the public port alone, as the link says', async () => {
    // Without it, links are made through a loopback address only, and lead to the public port of this machine.
    const port = await freePort();
    await withReplica({ PORT: `${port}`, ADMIN_PORT: '0', PUBLIC_URL: '' }, async (gateway) => {
      const adminPort = /"adminPort":(\d+)/.exec(gateway.output())?.[1];
      const admin = `http://127.0.0.1:${adminPort}`;
      const { id, secret } = await fleet.admin.makeKey('Two ports');
      const headers = { authorization: `Bearer ${ROOT_TOKEN}`, 'content-type': 'application/json' };
      const post = (url: string, body: object) =>
        fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
      const made = await post(`${admin}/consumer-api-key/${id}/handover`, { ttlSeconds: 60 });
      const { url } = (await made.json()) as { readonly url: string };
      const [page, token] = url.split('#');
      expect(page).toBe(`http://127.0.0.1:${port}/tollgate/self/handover`);
      const path = '/tollgate/self/handover';
      const statuses = async (base: string) => [
        (await fetch(base + path)).status,
        (await post(`${base}${path}/open`, { token })).status,
      ];
      expect([await statuses(admin), await statuses(gateway.url)]).toEqual([
        [404, 404],
        [200, 200],
      ]);
      expect((await post(`${admin}${path}/reveal`, { token })).status).toBe(404);
      expect(await (await post(`${gateway.url}${path}/reveal`, { token })).json()).toMatchObject({ secret });
    });
  });
});

describe('who makes and ends links', () => {
  it('needs the scopes, and sees only keys with its tags', async () => {
    const { id } = await fleet.admin.makeKey('Tagged');
    const callWith = async (scopes: readonly string[], onlyTags: readonly string[] = []) => {
      const token = { name: 'limited', scopes, onlyTags };
      const { secret } = (await fleet.admin.call('POST', '/tollgate/admin-token/create', token)).body;
      return (method: string, path: string, body?: object) =>
        fleet.admin.call(method, path, body, { authorization: `Bearer ${secret}` });
    };
    const path = `/consumer-api-key/${id}/handover`;
    const { handoverId } = (await makeLink(id)).body;
    const writer = await callWith(['keys:read', 'keys:write']);
    expect((await writer('POST', path, { ttlSeconds: 60 })).body).toMatchObject({ code: 'missing_scope' });
    const other = await callWith(['keys:read', 'keys:write', 'keys:secret'], ['eu']);
    const responses = [
      await other('POST', path, { ttlSeconds: 60 }),
      await other('GET', path),
      await other('DELETE', `${path}/${handoverId}`),
    ];
    expect(responses.map(({ body }) => body.code)).toEqual(Array(3).fill('key_not_found'));
    const foreign = await fleet.admin.makeKey('Another');
    const away = await fleet.admin.call('DELETE', `/consumer-api-key/${foreign.id}/handover/${handoverId}`);
    expect(away).toMatchObject({ status: 404, body: { code: 'handover_not_found' } });
    expect((await writer('DELETE', `${path}/${handoverId}`)).status).toBe(200);
    expect((await writer('GET', path)).body.handovers).toMatchObject([{ state: 'revoked' }]);
  });

  it('gets 409 for a key of which only the digest is known', async () => {
    const value = 'ab'.repeat(32);
    const keys = [{ name: 'By hash', secretHash: { algorithm: 'sha256', value } }];
    const imported = await fleet.admin.call('POST', '/api-keys/import', { keys, onConflict: 'fail' });
    const made = await makeLink(imported.body.results[0].consumerApiKeyId);
    expect(made).toMatchObject({ status: 409, body: { code: 'secret_not_available' } });
  });
});

describe('what links keep', () => {
  it('is opened with a new encryption key after its rotation, and not used up where that key is missing', async () => {
    const { secret, token } = await keyWithLink('Sealed again');
    const old = Buffer.from(ENCRYPTION_KEY, 'base64');
    const records = openTestRecords(fleet.databaseUrl, { chainSecrets: null });
    try {
      const vault = new SecretVault([Buffer.alloc(32, 7), old], systemRandom);
      expect(await rotateSealedHandovers(records.handovers, vault, () => {})).toBeGreaterThan(0);
      expect(await rotateSealedHandovers(records.handovers, vault, () => {})).toBe(0);
      expect((await ask('reveal', token)).status).toBe(500);
      const back = new SecretVault([old, Buffer.alloc(32, 7)], systemRandom);
      expect(await rotateSealedHandovers(records.handovers, back, () => {})).toBeGreaterThan(0);
    } finally {
      await records.close();
    }
    expect((await ask('reveal', token)).body.secret).toBe(secret);
  });

  it('is deleted once the link has expired, or its secret is no longer valid', async () => {
    const expired = await keyWithLink('Pruned');
    const rotated = await keyWithLink('Rotated away');
    const fresh = await keyWithLink('Kept');
    await expire('handovers', 'key_id', expired.id);
    await rotate(rotated.id, 0);
    const records = openTestRecords(fleet.databaseUrl, { chainSecrets: null });
    try {
      await records.handovers.prune(Date.now(), 1);
    } finally {
      await records.close();
    }
    const kept: number[] = [];
    for (const { id } of [expired, rotated, fresh]) kept.push(await keptSecrets(id));
    expect(kept).toEqual([0, 0, 1]);
    expect((await ask('open', expired.token)).status).toBe(404);
  });

  it('is deleted in parts, which each end within the time of a statement', async () => {
    const { id } = await fleet.admin.makeKey('With many links');
    const records = openTestRecords(fleet.databaseUrl, { chainSecrets: null });
    try {
      for (const table of ['handover_secrets', 'handovers']) await limitDeletions(records.db, table);
      await database.query(
        `WITH made AS (INSERT INTO handovers (id, key_id, secret_version, token_digest, created_at, expires_at)
          SELECT 'old-' || n, $1, 1, sha256(n::text::bytea), '2020-01-01', '2020-01-02' FROM generate_series(1, 1001) AS n
          RETURNING id)
        INSERT INTO handover_secrets SELECT id, $1, '' FROM made`,
        [id],
      );
      await records.handovers.prune(Date.now(), 1);
    } finally {
      await records.close();
    }
    expect(await keptSecrets(id)).toBe(0);
    expect((await database.query('select from handovers where key_id = $1', [id])).rowCount).toBe(0);
  });
});

/** Runs work with a further replica that has other settings. */
async function withReplica(
  settings: Readonly<Record<string, string>>,
  work: (gateway: RunningGateway) => Promise<void>,
): Promise<void> {
  const gateway = await startInProcess({ ...fleet.environment, ...settings });
  try {
    await work(gateway);
  } finally {
    await gateway.stop();
  }
}

async function rotate(id: string, graceSeconds = 3600): Promise<void> {
  await fleet.admin.call('POST', `/consumer-api-key/${id}/rotate`, { graceSeconds });
}

async function patch(id: string, body: object): Promise<void> {
  await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, body);
}

async function revoke(id: string, handoverId: string): Promise<void> {
  await fleet.admin.call('DELETE', `/consumer-api-key/${id}/handover/${handoverId}`);
}

async function expire(table: string, column: string, id: string): Promise<void> {
  await database.query(`update ${table} set expires_at = now() - interval '1 hour' where ${column} = $1`, [
    id,
  ]);
}
