import { setTimeout as wait } from 'node:timers/promises';
import { cpuNs } from '../../measure/process-counts.ts';
import { distanceFromOne, median, spreadOf } from '../../measure/statistics.ts';
import { decimal } from '../../report/table.ts';
import { manage } from '../../setup/keys.ts';
import type { TollgateCandidate } from '../../setup/tollgate.ts';
import { metricOf, transactions } from '../counts.ts';
import { grouped, type RowResult, type ScaleRow, verdictOnRatio } from '../row.ts';
import { PLANS } from '../scale-keys.ts';
import type { ScaleWorld } from '../scale-world.ts';

const PER_SECOND = 200;
const WORKERS = 16;
/** After this number of changes one is of the plan with the most keys. */
const PLAN_EDIT_EVERY = 100;
const MOST_RATIO = 1.3;
const AMPLE = 1_000_000_000;

interface Changed {
  readonly id: string;
  secret: string;
}

/** What the changes saw. */
interface Seen {
  changes: number;
  planEdits: number;
  /** Requests after a change that were decided as before it. */
  stale: number;
  /** The last edit of the plan; resolves when it was checked. */
  planEdit: Promise<void>;
}

/** Keys and a plan are changed while another replica serves requests of all keys. */
export const FLOOD_OF_CHANGES: ScaleRow = {
  name: 'flood-of-changes',
  title: 'A flood of changes',
  measure: async (world) => {
    await world.haveKeys(world.size.keys);
    const serving = await world.startReplica();
    const changing = await world.startReplica();
    try {
      return await measure(world, serving, changing);
    } finally {
      await serving.stop();
      await changing.stop();
    }
  },
};

async function measure(
  world: ScaleWorld,
  serving: TollgateCandidate,
  changing: TollgateCandidate,
): Promise<RowResult> {
  const load = { port: serving.port, keys: world.size.keys, law: 'zipf' } as const;
  await world.load({ ...load, seconds: 2 * world.size.seconds });
  const keys = await Promise.all(Array.from({ length: WORKERS }, () => makeKey(changing.port)));
  const ofPlan = await makeKey(changing.port);
  const seen: Seen = { changes: 0, planEdits: 0, stale: 0, planEdit: Promise.resolve() };
  const turn = async (isChanging: boolean) => {
    const before = cpuNs(serving.pids());
    const [{ requests, limited, broken }, cpuNsAfter] = await Promise.all([
      world.load({ ...load, seconds: 2 * world.size.seconds }),
      // Ends with the load: what comes later is not its.
      wait(2000 * world.size.seconds).then(() => cpuNs(serving.pids())),
      isChanging
        ? changeAll({ keys, ofPlan, changing, serving, seen, seconds: 2 * world.size.seconds })
        : undefined,
    ]);
    const cpuUs = (cpuNsAfter - before) / 1000 / requests;
    return { cpuUs, failed: limited + broken };
  };
  const turns = { quiet: [], again: [], changed: [] } as Record<
    'quiet' | 'again' | 'changed',
    { readonly cpuUs: number; readonly failed: number }[]
  >;
  for (let round = 0; round < world.size.rounds; round += 1) {
    turns.quiet.push(await turn(false));
    turns.changed.push(await turn(true));
    turns.again.push(await turn(false));
  }
  const ratioTo = (which: 'again' | 'changed') =>
    spreadOf(turns[which].map(({ cpuUs }, round) => cpuUs / (turns.quiet[round]?.cpuUs ?? Number.NaN)));
  const spread = distanceFromOne(ratioTo('again'));
  const perSecond = seen.changes / (2 * world.size.seconds * world.size.rounds);
  const edit = await measurePlanEdit(world, serving, changing);
  const cpuOf = (which: keyof typeof turns) => decimal(median(turns[which].map(({ cpuUs }) => cpuUs)));
  return {
    heads: ['serving replica', 'CPU µs a request', '×', 'changes/s', 'failed requests'],
    rows: [
      ['no changes', cpuOf('quiet'), '1', '0', failedIn(turns.quiet)],
      [
        'changes',
        cpuOf('changed'),
        decimal(ratioTo('changed').median, 2),
        decimal(perSecond, 0),
        failedIn(turns.changed),
      ],
    ],
    spread,
    verdicts: [
      verdictOnRatio('CPU a request during changes', ratioTo('changed'), ...([MOST_RATIO, spread] as const)),
      {
        budget: 'no stale decision',
        measured: `${seen.stale} of ${grouped(seen.changes)} changes`,
        holds: seen.stale === 0,
      },
      {
        budget: 'a plan edit does not reload its keys at once',
        measured: `${grouped(edit.queries)} queries in the second after it, ${grouped(edit.cachedKeys)} keys cached`,
        holds: edit.queries < edit.cachedKeys / 10,
      },
    ],
    notes: [
      `Wanted are ${PER_SECOND} changes a second: a key is disabled, enabled or rotated, and one of ${PLAN_EDIT_EVERY} changes is one of the plan that a tenth of the keys, at most 100 000, are bound to. After each, the next request goes to another replica than the change. ${seen.planEdits} changes were of the plan.`,
    ],
  };
}

function failedIn(turns: readonly { readonly failed: number }[]): string {
  return String(turns.reduce((sum, { failed }) => sum + failed, 0));
}

interface Flood {
  readonly keys: readonly Changed[];
  /** Shows the limit of the plan: it is not changed itself. */
  readonly ofPlan: Changed;
  readonly changing: TollgateCandidate;
  readonly serving: TollgateCandidate;
  readonly seen: Seen;
  readonly seconds: number;
}

/** Each key is changed by one worker, which waits for the change and checks it at the other replica. */
async function changeAll(flood: Flood): Promise<void> {
  const until = performance.now() + flood.seconds * 1000;
  const pauseMs = (1000 * WORKERS) / PER_SECOND;
  const work = async (key: Changed) => {
    for (let turn = 0; performance.now() < until; ) {
      const dueAt = performance.now() + pauseMs;
      flood.seen.changes += 1;
      if (flood.seen.changes % PLAN_EDIT_EVERY === 0) await editPlan(flood);
      else {
        await changeKey(flood, key, turn % 3);
        turn += 1;
      }
      await wait(Math.max(0, dueAt - performance.now()));
    }
  };
  await Promise.all(flood.keys.map(work));
}

async function editPlan(flood: Flood): Promise<void> {
  const { changing, ofPlan, seen } = flood;
  seen.planEdits += 1;
  const limit = AMPLE + seen.planEdits;
  // One after the other: of two at a time, either may be the last one.
  seen.planEdit = seen.planEdit.then(async () => {
    await manage(changing.port, ['PATCH', `/rate-limit/${PLANS.many}`], { limit });
    await expectNow(
      flood,
      ofPlan.secret,
      ({ headers }) => Number(headers.get('x-ratelimit-limit')) === limit,
    );
  });
  await seen.planEdit;
}

/** Disables the key, enables it again, or rotates it, in turns. */
async function changeKey(flood: Flood, key: Changed, turn: number): Promise<void> {
  const { port } = flood.changing;
  if (turn === 2) {
    const old = key.secret;
    const path = `/consumer-api-key/${key.id}/rotate`;
    const rotated = await manage<{ readonly secret: string }>(port, ['POST', path], { graceSeconds: 0 });
    key.secret = rotated.secret;
    await expectNow(flood, key.secret, ({ ok }) => ok);
    await expectNow(flood, old, ({ status }) => status === 401);
  } else {
    const enabled = turn === 1;
    await manage(port, ['PATCH', `/consumer-api-key/${key.id}`], { enabled });
    await expectNow(flood, key.secret, ({ ok }) => ok === enabled);
  }
}

/** The next request at the other replica. */
async function expectNow(
  { serving, seen }: Flood,
  secret: string,
  isExpected: (response: Response) => boolean,
): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${serving.port}/v1/items`, {
    headers: { authorization: `Bearer ${secret}` },
  });
  await response.arrayBuffer();
  if (!isExpected(response)) seen.stale += 1;
}

async function makeKey(port: number): Promise<Changed> {
  return manage<Changed>(port, ['POST', '/consumer-api-key/create'], {
    ...{ name: 'changed', rateLimitId: PLANS.many },
  });
}

async function measurePlanEdit(
  world: ScaleWorld,
  serving: TollgateCandidate,
  changing: TollgateCandidate,
): Promise<Record<'queries' | 'cachedKeys', number>> {
  await wait(2000);
  const before = await transactions(world.postgres);
  await manage(changing.port, ['PATCH', `/rate-limit/${PLANS.many}`], { limit: 2 * AMPLE });
  const load = { port: serving.port, keys: world.size.keys, law: 'zipf', seconds: 1 } as const;
  await world.load(load);
  // Statistics of Postgres are up to a second late.
  await wait(1100);
  const queries = (await transactions(world.postgres)) - before;
  return { queries, cachedKeys: await metricOf(serving, 'tollgate_key_cache_entries') };
}
