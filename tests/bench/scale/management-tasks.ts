import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { decimal } from '../report/table.ts';
import { manage } from '../setup/keys.ts';
import { REPOSITORY, ROOT_TOKEN, type TollgateCandidate, tollgateEnvironment } from '../setup/tollgate.ts';
import { numberOf } from './counts.ts';
import { grouped, type Verdict } from './row.ts';
import { PLANS, secretOf } from './scale-keys.ts';
import type { ScaleWorld } from './scale-world.ts';

/** What a task gave. */
interface Done {
  /** For the table. */
  readonly returned: string;
  /** Time of the second half of what came, divided by that of the first. */
  readonly halves?: number;
  readonly verdict?: Verdict;
}

interface ManagementTask {
  readonly title: string;
  perform(world: ScaleWorld, replica: TollgateCandidate): Promise<Done>;
}

const NEW_KEY = Buffer.alloc(32, 7).toString('base64');
const MOVED = 50_000;
const MOST_MOVE_SECONDS = 2;
const IMPORTED = 500;
const IMPORTS = 20;
/** A response of so many bytes comes in enough parts for a look at its halves. */
const LARGE_BYTES = 4e6;

/** The tasks in their order: the last ones change the keys, and the very last one the encryption key. */
export const TASKS: readonly ManagementTask[] = [
  read('list, a page of 100', '/consumer-api-key?limit=100'),
  read(
    'list, a page of 200 with totals of usage',
    '/consumer-api-key?limit=200&sort=lastUsedAt&include=usage',
  ),
  read('list with the number of all', '/consumer-api-key?limit=100&count=true'),
  read('list by name', '/consumer-api-key?limit=100&sort=name'),
  read('search for one', '/consumer-api-key?q=customer-4711&limit=100'),
  read('search for none', '/consumer-api-key?q=nowhere&limit=100'),
  read('search by tag, counted', '/consumer-api-key?tag=eu&limit=100&count=true'),
  read('keys of a plan, counted', `/consumer-api-key?rateLimitId=${PLANS.many}&limit=100&count=true`),
  read('plans with their keys', '/rate-limit?include=keys'),
  {
    title: 'find by secret',
    perform: async (_, { port }) => {
      await manage(port, ['POST', '/api-keys/find'], { secret: secretOf(1) });
      return { returned: '1 key' };
    },
  },
  read('usage of all keys by the hour', '/api-keys/usage?from=now-1d&to=now&interval=hour'),
  read('usage of the busiest keys', '/api-keys/usage?from=now-1d&to=now&interval=day&groupBy=key&top=20'),
  read('audit log, a page', '/tollgate/audit-log?limit=100'),
  read('audit log, CSV', '/tollgate/audit-log?format=csv'),
  read('audit log verified', '/tollgate/audit-log/verify'),
  read('configuration, JSON', '/tollgate/config'),
  read('configuration, YAML', '/tollgate/config?format=yaml'),
  {
    title: `import of ${grouped(IMPORTED * IMPORTS)} keys`,
    perform: async ({ size }, { port }) => {
      for (let part = 0; part < IMPORTS; part += 1) {
        const keys = Array.from({ length: IMPORTED }, (_, index) => ({
          ...{ name: 'late', secret: secretOf(size.keys + part * IMPORTED + index) },
        }));
        await manage(port, ['POST', '/api-keys/import'], { keys });
      }
      return { returned: `${grouped(IMPORTED * IMPORTS)} keys` };
    },
  },
  {
    title: 'edit of the largest plan',
    perform: async (_, { port }) => {
      await manage(port, ['PATCH', `/rate-limit/${PLANS.many}`], { limit: 999_999_999 });
      return { returned: '1 plan' };
    },
  },
  {
    title: 'preview of an edit of the largest plan',
    perform: async (_, { port }) => {
      await manage(port, ['POST', `/rate-limit/${PLANS.many}/preview`], { limit: 500 });
      return { returned: '1 preview' };
    },
  },
  {
    title: 'bulk change, dry run, of the keys of a plan',
    perform: async (_, { port }) => {
      const wanted = { filter: { rateLimitId: PLANS.from }, action: 'disable', dryRun: true };
      const { total } = await manage<{ readonly total: number }>(port, ['POST', '/api-keys/bulk'], wanted);
      return { returned: `${grouped(total)} keys` };
    },
  },
  { title: 'bulk change: keys moved to another plan', perform: movePlan },
  { title: 'deletion of a plan whose keys move to another one', perform: deletePlan },
  { title: 'rotate-encryption-key', perform: rotateEncryptionKey },
];

/** A read of everything below the path; `now-1d` and `now` are instants. */
function read(title: string, path: string): ManagementTask {
  return {
    title,
    perform: async (_, { port }) => {
      const nowMs = Date.now();
      const at = (ms: number) => new Date(ms).toISOString().replace(/\.\d+/, '');
      const url = path.replace('now-1d', at(nowMs - 86_400_000)).replace('=now', `=${at(nowMs + 3_600_000)}`);
      const response = await fetch(`http://127.0.0.1:${port}${url}`, {
        headers: { authorization: `Bearer ${ROOT_TOKEN}` },
      });
      if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
      return drained(response);
    },
  };
}

async function drained({ body }: Response): Promise<Done> {
  const startedAtMs = performance.now();
  const parts: { readonly bytes: number; readonly atMs: number }[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    parts.push({ bytes, atMs: performance.now() - startedAtMs });
  }
  const returned = bytes < 1e6 ? `${grouped(bytes / 1e3)} kB` : `${grouped(bytes / 1e6)} MB`;
  if (bytes < LARGE_BYTES) return { returned };
  const halfAtMs = parts.find((part) => part.bytes >= bytes / 2)?.atMs ?? Number.NaN;
  return { returned, halves: ((parts.at(-1)?.atMs ?? Number.NaN) - halfAtMs) / halfAtMs };
}

async function movePlan({ size }: ScaleWorld, { port }: TollgateCandidate): Promise<Done> {
  const startedAtMs = performance.now();
  const wanted = { filter: { rateLimitId: PLANS.from }, action: 'set-plan', rateLimitId: PLANS.to };
  const { jobId } = await manage<{ readonly jobId: string }>(port, ['POST', '/api-keys/bulk'], wanted);
  for (;;) {
    const job = await manage<Record<'done' | 'total' | 'state', number | string>>(port, [
      ...(['GET', `/tollgate/job/${jobId}`] as const),
    ]);
    const seconds = (performance.now() - startedAtMs) / 1000;
    const isOver = job.state !== 'running';
    if (isOver || seconds > size.patienceSeconds) {
      if (!isOver) await manage(port, ['POST', `/tollgate/job/${jobId}/cancel`]);
      const perSecond = grouped(Number(job.done) / seconds);
      return {
        returned: `${grouped(Number(job.done))} of ${grouped(Number(job.total))} keys, ${perSecond} a second`,
      };
    }
    await wait(20);
  }
}

/** Deletes a plan, whose keys move to another one in the same transaction. */
async function deletePlan(_: ScaleWorld, { port }: TollgateCandidate): Promise<Done> {
  const startedAtMs = performance.now();
  // The bulk change before has moved them here.
  const path = `/rate-limit/${PLANS.to}?rebindTo=${PLANS.many}`;
  const { reboundKeys } = await manage<{ readonly reboundKeys: number }>(port, ['DELETE', path]);
  const seconds = (performance.now() - startedAtMs) / 1000;
  const needed = (seconds * MOVED) / reboundKeys;
  return {
    returned: `${grouped(reboundKeys)} keys`,
    verdict: {
      budget: `a plan move of ${grouped(MOVED)} keys ≤ ${MOST_MOVE_SECONDS} s`,
      measured: `${decimal(seconds, 2)} s for ${grouped(reboundKeys)} keys: ${decimal(needed, 2)} s`,
      holds: needed <= MOST_MOVE_SECONDS,
    },
  };
}

/** A process of its own, as an operator runs it. One that takes too long is ended, which it may be at any time. */
async function rotateEncryptionKey(world: ScaleWorld): Promise<Done> {
  const { backend, redis, postgres, postgresUrl, size } = world;
  const environment = tollgateEnvironment({
    ...{ backendPort: backend.port, redisPort: redis.port, redisDatabase: 0, databaseUrl: postgresUrl },
  });
  const sealed =
    'SELECT count(*) FROM consumer_keys WHERE sealed_secret = ANY (SELECT sealed_secret FROM sealed_before)';
  await postgres.query('DROP TABLE IF EXISTS sealed_before');
  await postgres.query(
    'CREATE UNLOGGED TABLE sealed_before AS SELECT sealed_secret FROM consumer_keys WHERE sealed_secret IS NOT NULL',
  );
  const total = await numberOf(postgres, 'SELECT count(*) FROM sealed_before');
  const startedAtMs = performance.now();
  // On the cores of the bench: on that of the replica it would take turns with it.
  const child = spawn(process.execPath, [join(REPOSITORY, 'src/cli/rotate-encryption-key.ts')], {
    env: {
      PATH: process.env.PATH ?? '',
      ...environment,
      ENCRYPTION_KEY: `${NEW_KEY},${environment.ENCRYPTION_KEY}`,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const tooLong = setTimeout(() => child.kill('SIGKILL'), size.patienceSeconds * 1000);
  await once(child, 'exit');
  clearTimeout(tooLong);
  const seconds = (performance.now() - startedAtMs) / 1000;
  const left = await numberOf(postgres, sealed);
  await postgres.query('DROP TABLE sealed_before');
  return {
    returned: `${grouped(total - left)} of ${grouped(total)} secrets, ${grouped((total - left) / seconds)} a second`,
  };
}
