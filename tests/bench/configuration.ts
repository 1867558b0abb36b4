import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { availableParallelism, loadavg } from 'node:os';
import { resolve } from 'node:path';
import { sql } from 'kysely';
import { pino } from 'pino';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import { InProcessGateway } from '../support/in-process-gateway.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';
import { scriptCommand, wholeNumber } from '../support/script-command.ts';
import { withTextInPlace } from '../support/text-in-place.ts';
import { decimal, table } from './report/table.ts';
import { withRecords } from './setup/with-records.ts';

const command = scriptCommand(
  'bench:configuration',
  'What export, import, apply and its plan take with many keys in Postgres: time, CPU of the gateway with its client, and the most memory beyond idle.',
)
  .argument(
    '[keys...]',
    'how many keys, one after the other: 40 000, 120 000 and 300 000 by default',
    (text: string, all: readonly number[] = []) => [...all, wholeNumber(1)(text)],
  )
  .option('--publish', 'the table of docs/performance.md is written again')
  .parse();
const named: readonly number[] = command.processedArgs[0];
const SIZES = named.length > 0 ? named : [40_000, 120_000, 300_000];
const PAGE = resolve(import.meta.dirname, '../../docs/performance.md');

const TOKEN = 'the-root-token-of-the-bench-of-configurations';
const OWNER = 'bench';
/** The most that one configuration may have. */
const CONFIGURED_KEYS = 10_000;
/** The most that one request may import. */
const IMPORTED_KEYS = 500;
const IMPORTS = 20;
const ROWS_AT_ONCE = 5000;
const SAMPLE_MS = 10;

const rows: string[][] = [];
const loadBefore = loadavg()[0] ?? Number.NaN;
await withRecords(async (records) => {
  const server = createServer(await managementOf(records));
  const url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  let filled = 0;
  for (const size of SIZES.toSorted((a, b) => a - b)) {
    await fill(records, filled, size);
    filled = size;
    await measureAll(url, size);
  }
  server.closeAllConnections();
  server.close();
});
const text = `Measured ${new Date().toISOString().slice(0, 10)} on ${availableParallelism()} cores, Node ${process.version}, load average ${decimal(loadBefore)} before it. CPU is that of the gateway with its client, in one process, without Postgres.

${table(['keys in Postgres', 'what', 'time, s', 'CPU, s', 'most memory beyond idle, MB'], rows)}
`;
process.stdout.write(text);
if (command.opts().publish === true) {
  const page = await readFile(PAGE, 'utf8');
  await writeFile(PAGE, withTextInPlace(page, 'bench:configuration', text));
}

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
  rows.push([
    size.toLocaleString('en').replaceAll(',', ' '),
    what,
    decimal(ms / 1000, 1),
    decimal((user + system) / 1_000_000, 1),
    decimal((most - idle) / 1e6, 0),
  ]);
}
