import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { createSecureContext, createServer } from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Admin } from '../support/admin.ts';
import { requireProgram } from '../support/debian-package.ts';
import { freePort } from '../support/free-port.ts';
import { ENCRYPTION_KEY, ROOT_TOKEN, startGateway } from '../support/gateway.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';
import { clusterArgs } from '../support/redis-cluster.ts';
import { startSentinel } from '../support/redis-sentinel.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { createMigratedDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { ask, type RedisFleet, startRedisFleet } from './support/redis-fleet.ts';

const run = promisify(execFile);
/** As docs/settings.md has it. */
const RULES = ['~tg:*', '&tg:*', '+@all', '-@admin', '-@dangerous', '+info'];
const CLUSTER_RULES = ['+cluster|slots', '+cluster|info'];
const PASSWORD = 'p@ss/word';
const LOGIN = `gateway:${encodeURIComponent(PASSWORD)}`;

const stops: (() => Promise<void>)[] = [];
let directory: string;
let fleet: RedisFleet;
let singleUrl: string;

/** A certificate for an address, one for a name, and one for another name. */
const CERTIFICATES = { address: 'IP:127.0.0.1', name: 'DNS:localhost', other: 'DNS:other.invalid' } as const;
type Certificate = keyof typeof CERTIFICATES;

/** A CA for this test, and its certificates. */
async function makeCertificates(): Promise<void> {
  const openssl = await requireProgram('openssl', 'openssl');
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const make = (...args: readonly string[]) => run(openssl, args, { cwd: directory });
  await make(
    'req',
    '-x509',
    ...key,
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
    '-days',
    '2',
    '-subj',
    '/CN=tests',
  );
  await make('req', ...key, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=redis');
  const sign = ['x509', '-req', '-in', 'server.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial'];
  for (const [certificate, holder] of Object.entries(CERTIFICATES)) {
    await writeFile(join(directory, 'extension'), `subjectAltName=${holder}`);
    await make(...sign, '-days', '2', '-extfile', 'extension', '-out', `${certificate}.pem`);
  }
}

function tlsSettings(
  port: number,
  certificate: Certificate = 'address',
): readonly (readonly [string, string])[] {
  return [
    ['tls-port', String(port)],
    ['tls-cert-file', join(directory, `${certificate}.pem`)],
    ['tls-key-file', join(directory, 'server.key')],
    ['tls-ca-cert-file', join(directory, 'ca.pem')],
    ['tls-auth-clients', 'no'],
  ];
}

/** A server with TLS on a second port, a user for the gateway, and no one else who may log in. */
async function startTlsServer(
  args: readonly string[] = [],
  rules: readonly string[] = [],
  certificate: Certificate = 'address',
): Promise<{ readonly server: RedisServer; readonly tlsPort: number; readonly direct: Redis }> {
  const tlsPort = await freePort();
  const tls = tlsSettings(tlsPort, certificate).flatMap(([name, value]) => [`--${name}`, value]);
  const server = await startRedisServer([...tls, ...args]);
  stops.push(() => server.stop());
  const direct = new Redis(server.url);
  direct.on('error', () => {});
  stops.push(async () => direct.disconnect());
  await direct.call('ACL', 'SETUSER', 'gateway', 'on', `>${PASSWORD}`, ...RULES, ...rules);
  return { server, tlsPort, direct };
}

/** A router that finds `localhost` by its name, and has another certificate for a connection that names no server. Returns its port. */
async function startRouter(port: number): Promise<number> {
  const [key, cert, other] = await Promise.all(
    ['server.key', 'name.pem', 'other.pem'].map((file) => readFile(join(directory, file))),
  );
  const named = createSecureContext({ key, cert });
  const router = createServer(
    { key, cert: other, SNICallback: (name, found) => found(null, name === 'localhost' ? named : undefined) },
    (socket) => void pipeline(socket, connect(port, '127.0.0.1'), socket, () => {}),
  );
  stops.push(async () => void router.close());
  return listenOnLoopback(router);
}

/** A cluster of one server, whose TLS port it returns. */
async function startTlsCluster(
  args: readonly string[] = [],
  certificate: Certificate = 'address',
): Promise<number> {
  const { direct, tlsPort } = await startTlsServer(
    await clusterArgs(['--tls-cluster', 'yes', ...args]),
    CLUSTER_RULES,
    certificate,
  );
  await addAllSlots(direct);
  return tlsPort;
}

async function addAllSlots(direct: Redis): Promise<void> {
  await direct.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
  await until(async () => String(await direct.cluster('INFO')).includes('cluster_state:ok'));
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-tls-'));
  stops.push(() => rm(directory, { recursive: true, force: true }));
  await makeCertificates();

  const alone = await startTlsServer();
  singleUrl = `rediss://${LOGIN}@127.0.0.1:${alone.tlsPort}`;
  const port = await startTlsCluster();
  const namedPort = await startTlsCluster(
    ['--cluster-announce-hostname', 'localhost', '--cluster-preferred-endpoint-type', 'hostname'],
    'name',
  );
  const watched = await startTlsServer();
  const sentinelPort = await freePort();
  const sentinel = await startSentinel('orders', watched.tlsPort, [
    ...tlsSettings(sentinelPort).map(([name, value]) => `${name} ${value}`),
    'tls-replication yes',
  ]);
  stops.push(sentinel.stop);

  const routedSingle = await startRouter(alone.server.port);
  const routedNode = await startTlsServer(
    await clusterArgs([
      '--cluster-announce-hostname',
      'localhost',
      '--cluster-preferred-endpoint-type',
      'hostname',
    ]),
    CLUSTER_RULES,
  );
  const routedCluster = await startRouter(routedNode.server.port);
  await routedNode.direct.config('SET', 'cluster-announce-port', routedCluster);
  await addAllSlots(routedNode.direct);
  const routedMaster = await startRouter((await startTlsServer()).server.port);
  const naming = await startSentinel('orders', `localhost ${routedMaster}`, [
    ...tlsSettings(await freePort()).map(([name, value]) => `${name} ${value}`),
    ...['tls-replication yes', 'sentinel resolve-hostnames yes', 'sentinel announce-hostnames yes'],
  ]);
  stops.push(naming.stop);
  const routedSentinel = await startRouter(naming.port);

  const common = { REDIS_TIMEOUT_MS: '5000', NODE_EXTRA_CA_CERTS: join(directory, 'ca.pem') };
  fleet = await startRedisFleet(
    [
      { REDIS_MODE: 'single', REDIS_URL: singleUrl },
      { REDIS_MODE: 'cluster', REDIS_URL: `rediss://${LOGIN}@127.0.0.1:${port}` },
      { REDIS_MODE: 'sentinel', REDIS_URL: `rediss://${LOGIN}@127.0.0.1:${sentinelPort}/orders` },
      { REDIS_MODE: 'cluster', REDIS_URL: `rediss://${LOGIN}@localhost:${namedPort}` },
      { REDIS_MODE: 'single', REDIS_URL: `rediss://${LOGIN}@localhost:${routedSingle}/1` },
      { REDIS_MODE: 'cluster', REDIS_URL: `rediss://${LOGIN}@localhost:${routedCluster}` },
      { REDIS_MODE: 'sentinel', REDIS_URL: `rediss://${LOGIN}@localhost:${routedSentinel}/orders` },
    ].map((own) => ({ ...common, ...own })),
    false,
  );
});
afterAll(async () => {
  await fleet?.stop();
  for (const stop of stops.splice(0).toReversed()) await stop();
});

describe('a gateway whose Redis wants TLS with its own CA, and a user with few rights', () => {
  it.each([
    ['single', 0],
    ['cluster', 1],
    ['sentinel', 2],
    ['cluster and certificates of names only', 3],
    ['single behind a router by name', 4],
    ['cluster behind a router by name', 5],
    ['sentinel behind a router by name', 6],
  ] as const)('counts, records and manages with REDIS_MODE=%s', async (_, index) => {
    const replica = fleet.replicas[index];
    if (replica === undefined) throw new Error('no replica');
    const admin = new Admin(replica.url);
    await admin.makePlan(`two-${index}`, 2, 'hour');
    const { id, secret } = await admin.makeKey('one', `two-${index}`);
    const responses = [];
    for (let time = 0; time < 3; time += 1) responses.push(await ask(replica.url, secret));
    expect(responses.map(({ status, headers }) => [status, headers.get('x-ratelimit-remaining')])).toEqual([
      [200, '1'],
      [200, '0'],
      [429, '0'],
    ]);
    await until(async () => (await admin.detail(id)).usage.totalRequests === 3);
    await admin.deleteKey(id);
    expect((await ask(replica.url, secret)).status).toBe(401);
    const readiness = await fetch(`${replica.opsUrl}/readyz`);
    expect(await readiness.json()).toMatchObject({ components: { redis: 'ok' } });
    expect(replica.output()).not.toMatch(/NOPERM|WRONGPASS/);
    // On a busy machine a first attempt may be too slow.
    const [, sinceReady] = replica.output().split('"msg":"ready"');
    expect(sinceReady).toBeDefined();
    expect(sinceReady).not.toContain('connection lost');
    expect(replica.output()).not.toContain(encodeURIComponent(PASSWORD));
  });

  it('is not ready without the CA, and says why', async () => {
    const database = await createMigratedDatabase();
    const gateway = await startGateway(
      {
        BACKEND_URL: 'http://127.0.0.1:1',
        DATABASE_URL: database.url,
        REDIS_URL: singleUrl,
        ROOT_TOKEN,
        ENCRYPTION_KEY,
      },
      { isReady: false },
    );
    try {
      await until(() =>
        /"code":"(SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE)"/.test(gateway.output()),
      );
      expect((await fetch(`${gateway.opsUrl}/readyz`)).status).toBe(503);
    } finally {
      await gateway.kill();
      await database.drop();
    }
  });
});
