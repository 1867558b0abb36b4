import { createWriteStream } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sql } from 'kysely';
import { pino } from 'pino';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import { InProcessGateway } from '../support/in-process-gateway.ts';
import { scriptCommand, wholeNumber } from '../support/script-command.ts';
import { withRecords } from './setup/with-records.ts';

const named: readonly number[] = scriptCommand(
  'bench:configuration',
  'What export, import, apply and its plan take with many keys in Postgres: time, CPU of the gateway with its client, and the most memory beyond idle.',
)
  .argument(
    '[keys...]',
    'how many keys, one after the other: 40 000, 120 000 and 300 000 by default',
    (text: string, all: readonly number[] = []) => [...all, wholeNumber(1)(text)],
  )
  .parse().processedArgs[0];
const SIZES = named.length > 0 ? named : [40_000, 120_000, 300_000];

const TOKEN = 'the-root-token-of-the-bench-of-configurations';
const OWNER = 'bench';
/** The most that one configuration may have. */
const CONFIGURED_KEYS = 10_000;
/** The most that one request may import. */
const IMPORTED_KEYS = 500;
const IMPORTS = 20;
const ROWS_AT_ONCE = 5000;
const SAMPLE_MS = 10;

const out = createWriteStream('', { fd: 1 });
await withRecords(async (records) => {
  const server = createServer(await managementOf(records));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  out.write(
    `${'keys'.padStart(8)}  ${'what'.padEnd(28)} ${'ms'.padStart(8)} ${'CPU ms'.padStart(8)} ${'MB beyond idle'.padStart(15)}\n`,
  );
  let filled = 0;
  for (const size of SIZES.toSorted((a, b) => a - b)) {
    await fill(records, filled, size);
    filled = size;
    await measureAll(url, size);
  }
  server.closeAllConnections();
  server.close();
});

async function managementOf(records: Records): Promise<RequestListener> {
  const gateway = new InProcessGateway({ settings: { rootTokens: [TOKEN] }, log: pino({ level: 'warn' }) });
  return gateway.management({
    records,
    usage: {
      reader: { read: () => Promise.reject(new Error('unused')), totals: async () => new Map() },
      pending: { read: async () => [], oldestAtMs: async () => undefined, knownOldestAtMs: () => undefined },
    },
    system: { read: () => Promise.reject(new Error('unused')) },
    consoleDirectory: undefined,
  });
}

/** Keys from `from` up to `to`, all of one owner, as its configurations left them. */
async function fill({ db }: Records, from: number, to: number): Promise<void> {
  for (let start = from; start < to; start += ROWS_AT_ONCE) {
    await sql`
      INSERT INTO consumer_keys (id, name, created_at, updated_at, enabled, lookup, sealed_secret, external_id, tags, metadata, managed_by)
      SELECT 'key_' || lpad(upper(to_hex(number)), 12, '0') || substr(upper(md5(number::text)), 1, 14), 'Customer ' || number,
        now(), now(), true, sha256(number::text::bytea), sha256(number::text::bytea), 'customer-' || lpad(number::text, 8, '0'),
        array['eu', 'paid'], jsonb_build_object('team', 'mobile', 'seats', number % 100), ${OWNER}
      FROM generate_series(${start}::bigint, ${Math.min(to, start + ROWS_AT_ONCE) - 1}::bigint) AS number`.execute(
      db,
    );
  }
  await sql`VACUUM ANALYZE consumer_keys`.execute(db);
}

async function measureAll(url: string, size: number): Promise<void> {
  const call = async (path: string, body?: object): Promise<Response> => {
    const headers = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' };
    const request = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(url + path, { headers, ...request });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response;
  };
  const read = async (path: string, body?: object) => drained(await call(path, body));
  const keys = Array.from({ length: Math.min(size, CONFIGURED_KEYS) }, (_, number) => ({
    externalId: `customer-${String(number).padStart(8, '0')}`,
    ...{
      name: `Customer ${number}`,
      tags: ['eu', 'paid'],
      metadata: { team: 'mobile', seats: number % 100 },
    },
  }));
  const wanted = { config: { keys }, owner: OWNER };
  await read('/tollgate/config/apply', { ...wanted, force: true });
  await report(size, 'export, JSON', () => read('/tollgate/config'));
  await report(size, 'export, YAML', () => read('/tollgate/config?format=yaml'));
  await report(size, `plan (diff) of ${keys.length}`, () => read('/tollgate/config/diff', wanted));
  await report(size, `apply of ${keys.length}, no change`, () => read('/tollgate/config/apply', wanted));
  await report(size, `import of ${IMPORTED_KEYS * IMPORTS}`, async () => {
    for (let part = 0; part < IMPORTS; part += 1) {
      const imported = Array.from({ length: IMPORTED_KEYS }, (_, number) => ({
        name: 'imported',
        secret: `secret-of-the-bench-${size}-${part}-${number}-000000000000`,
      }));
      await read('/api-keys/import', { keys: imported });
    }
  });
}

async function drained({ body }: Response): Promise<void> {
  for await (const _chunk of body ?? []);
}

async function report(size: number, what: string, perform: () => Promise<void>): Promise<void> {
  globalThis.gc?.();
  const idle = process.memoryUsage.rss();
  let most = idle;
  const sampling = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, SAMPLE_MS);
  const [cpuBefore, startedAtMs] = [process.cpuUsage(), performance.now()];
  await perform();
  const ms = performance.now() - startedAtMs;
  const { user, system } = process.cpuUsage(cpuBefore);
  clearInterval(sampling);
  const figures = [ms, (user + system) / 1000].map((value) => value.toFixed(0).padStart(8)).join(' ');
  out.write(
    `${String(size).padStart(8)}  ${what.padEnd(28)} ${figures} ${((most - idle) / 1e6).toFixed(0).padStart(15)}\n`,
  );
}
