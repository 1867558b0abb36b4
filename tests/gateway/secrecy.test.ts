import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { ENCRYPTION_KEY, ROOT_TOKEN } from '../support/gateway.ts';
import { until } from '../support/until.ts';

const AUTHORIZE_TOKEN = 'a-token-of-another-gateway';
const IMPORTED = 'a-secret-that-was-imported-1';
const HEADER = 'private-header-of-a-webhook';

let fleet: Fleet;
let secrets: readonly string[];

beforeAll(async () => {
  const settings = {
    ...{ LOG_LEVEL: 'trace', BACKEND_TIMEOUT_MS: '300', AUTHORIZE_PORT: '0', AUTHORIZE_TOKEN },
    ...{ WEBHOOK_ALLOW_HTTP: 'true', WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' },
  };
  fleet = await startFleet(1, settings, (req, res) => {
    if (req.url === '/hang') return;
    if (req.url === '/reset') req.socket.destroy();
    else res.end('ok');
  });
  const [replica] = fleet.replicas;
  const { id, secret } = await fleet.admin.makeKey('well kept');
  const url = replica?.url ?? '';
  const wrong = `${secret.slice(0, -1)}${secret.endsWith('0') ? '1' : '0'}`;
  const call = (path: string, credential: string) =>
    fetch(`${url}${path}`, {
      headers: { authorization: `Bearer ${credential}`, cookie: 'session=private-cookie' },
    }).then((response) => response.text());
  // Every way for a request to end, with credentials of every kind in every place.
  const bodies = await Promise.all([
    call('/fine?token=private-query', secret),
    call(`/keys/${secret}/mine`, secret),
    call('/hang', secret),
    call('/reset', secret),
    call('/fine', wrong),
    call('/fine', ROOT_TOKEN),
    call('/consumer-api-key', secret),
    call(`/consumer-api-key/${secret}`, ROOT_TOKEN),
    call('/rate-limit/create', ROOT_TOKEN),
  ]);
  for (const body of bodies) expect(body).not.toContain(secret);
  await until(async () => (await fleet.admin.detail(id)).usage.totalRequests === 4);
  secrets = [
    secret,
    secret.slice(3, 33),
    wrong,
    ROOT_TOKEN,
    ENCRYPTION_KEY,
    'private-query',
    'private-cookie',
    ...(await secretsOfManagement()),
  ];
});
afterAll(() => fleet?.stop());

/** Has secrets of every other kind made, stored and used, and returns them. */
async function secretsOfManagement(): Promise<readonly string[]> {
  let calls = 0;
  const post = async (path: string, body: object) => {
    const made = await fleet.admin.call('POST', path, body, { 'idempotency-key': `secrecy-${++calls}` });
    expect([path, made.status >= 200 && made.status < 300]).toEqual([path, true]);
    return made.body;
  };
  const key = await post('/consumer-api-key/create', { name: 'rotated' });
  const rotated = await post(`/consumer-api-key/${key.id}/rotate`, { graceSeconds: 600 });
  const handover = await post(`/consumer-api-key/${key.id}/handover`, { ttlSeconds: 600 });
  const reason = `the owner of ${rotated.secret} asked for it`;
  await post(`/consumer-api-key/${key.id}/limits/reset`, { reason });
  await post(`/consumer-api-key/${key.id}/limits/grant`, { reason, requests: 1 });
  await post('/api-keys/import', { keys: [{ name: 'imported', secret: IMPORTED }] });
  await post('/api-keys/find', { secret: IMPORTED });
  const token = await post('/tollgate/admin-token/create', { name: 'a script', scopes: ['support'] });
  const webhook = await post('/tollgate/webhook/create', {
    url: 'http://127.0.0.1:1/',
    events: ['tollgate.key.*'],
    headers: { authorization: HEADER },
  });
  const { secret: signing } = await post(`/tollgate/webhook/${webhook.webhookId}/rotate`, {
    graceSeconds: 600,
  });
  await post(`/tollgate/webhook/${webhook.webhookId}/test`, {});
  const [replica] = fleet.replicas;
  const asked = [AUTHORIZE_TOKEN, `${AUTHORIZE_TOKEN}-wrong`].map((presented) =>
    fetch(`${replica?.authorizeUrl}/authorize/original`, {
      headers: {
        authorization: `Bearer ${rotated.secret}`,
        'tollgate-authorize-token': presented,
        'x-original-method': 'GET',
        'x-original-uri': '/fine?token=private-query',
      },
    }).then(({ status }) => status),
  );
  expect(await Promise.all(asked)).toEqual([200, 401]);
  const [, link = ''] = handover.url.split('#');
  const revealed = await fetch(`${replica?.url}/tollgate/self/handover/reveal`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: link }),
  });
  expect(await revealed.json()).toMatchObject({ secret: rotated.secret });
  await until(async () => {
    const path = `/tollgate/webhook/${webhook.webhookId}/deliveries?status=pending`;
    const { body } = await fleet.admin.call('GET', path);
    return body.deliveries.some(({ attempts }: { attempts: readonly object[] }) => attempts.length > 0);
  });
  const signingKeys = [webhook.secret, signing].map((secret: string) => secret.replace('whsec_', ''));
  return [
    ...[key.secret, rotated.secret, link, IMPORTED, token.secret],
    ...[...signingKeys, HEADER, AUTHORIZE_TOKEN],
  ];
}

describe('no secret', () => {
  it('is in the log, not even at level trace', async () => {
    const output = fleet.replicas.map((replica) => replica.output()).join('');
    expect(output.length).toBeGreaterThan(500);
    for (const secret of secrets) expect(output).not.toContain(secret);
  });

  it('is in the metrics', async () => {
    const metrics = await (await fetch(`${fleet.replicas[0]?.opsUrl}/metrics`)).text();
    expect(metrics).toContain('tollgate_requests_total');
    for (const secret of secrets) expect(metrics).not.toContain(secret);
  });

  it('can be read in a dump of Postgres', async () => {
    const client = new Client({ connectionString: fleet.databaseUrl });
    await client.connect();
    try {
      const tables = await client.query<{ name: string }>(
        `SELECT quote_ident(table_name) AS name FROM information_schema.tables WHERE table_schema = 'public'`,
      );
      let dump = '';
      for (const { name } of tables.rows) {
        const { rows } = await client.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
        dump += rows.map(({ row }) => row).join('\n');
      }
      // Columns of bytes are shown as hex: there, too, nothing may be readable.
      dump += [...dump.matchAll(/\\x([0-9a-f]+)/g)]
        .map((match) => Buffer.from(match[1] ?? '', 'hex').toString('latin1'))
        .join('\n');
      expect(dump).toContain('well kept');
      for (const secret of secrets) expect(dump).not.toContain(secret);
    } finally {
      await client.end();
    }
  });

  it('can be read in a dump of Redis', async () => {
    const redis = new Redis(fleet.redisUrl);
    try {
      const keys = await redis.keys('*');
      expect(keys.length).toBeGreaterThan(0);
      const dumps = await Promise.all(
        keys.map(async (key) => `${key} ${(await redis.dumpBuffer(key))?.toString('latin1')}`),
      );
      for (const secret of secrets) expect(dumps.join('\n')).not.toContain(secret);
    } finally {
      redis.disconnect();
    }
  });
});
