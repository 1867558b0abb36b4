import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { IdempotentRequests } from '../../src/idempotency/idempotent-requests.ts';
import type { OnceOnly } from '../../src/idempotency/response-store.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { UnitOfWork } from '../../src/platform/unit-of-work.ts';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import type { RecordUnit } from '../../src/storage/postgres/record-units.ts';
import { limitDeletions } from '../support/limit-deletions.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { createPostgresRecords, RECORD_STORES, type TestRecords } from '../support/records.ts';
import { sampleChange, samplePlan } from '../support/sample-records.ts';
import { TEST_VAULT } from '../support/test-vault.ts';

const AT_MS = Date.UTC(2025, 5, 1);
const DAY_MS = 86_400_000;

function onceAt(atMs: number, id: Buffer = randomBytes(32)): OnceOnly {
  return { id, atMs, validSinceMs: atMs - DAY_MS };
}

function rethrow(failure: unknown): never {
  throw failure;
}

type Work = (unit: RecordUnit) => Promise<Buffer>;

/** A promise that the test settles. */
function gate() {
  return Promise.withResolvers<void>();
}

describe.each(RECORD_STORES)('the store of responses in %s', (name, create) => {
  let store: TestRecords;
  beforeAll(async () => {
    store = await create();
  });
  afterAll(() => store.remove());

  /** Work that makes a plan, and its response. */
  function makesPlan(planId: string, response = 'made'): Work {
    return async ({ plans }) => {
      await plans.insert(samplePlan({ id: planId }), sampleChange());
      return Buffer.from(response);
    };
  }

  async function exists(planId: string): Promise<boolean> {
    return (await store.records.plans.find(planId)) !== undefined;
  }

  it('performs once, and gives the response of the first time afterwards', async () => {
    const once = onceAt(AT_MS);
    const { responses } = store.records;
    const first = await responses.performOnce(once, makesPlan('once'), rethrow);
    const second = await responses.performOnce(once, makesPlan('twice', 'again'), rethrow);
    expect([first.kind, second.kind]).toEqual(['performed', 'stored']);
    expect(second).toMatchObject({ sealed: Buffer.from('made') });
    expect([await exists('once'), await exists('twice')]).toEqual([true, false]);
  });

  if (name === 'Postgres')
    it('lets no retry with its own transactions overtake a first attempt in one', async () => {
      const requests = new IdempotentRequests({
        ...{ store: store.records.responses, vault: TEST_VAULT, clock: systemClock },
      });
      const request = {
        credential: 'root',
        grant: { scopes: [], onlyTags: [] },
        idempotencyKey: 'k',
        content: 'the same',
      };
      const [began, ends] = [gate(), gate()];
      const response = { status: 200, headers: {}, body: { n: 1 } };
      const first = requests.perform(
        request,
        async () => {
          began.resolve();
          await ends.promise;
          return response;
        },
        rethrow,
      );
      await began.promise;
      const again = () => requests.performWithoutTransaction(request, async () => response, rethrow);
      await expect(again()).rejects.toMatchObject({ code: 'idempotency_in_progress' });
      ends.resolve();
      await first;
      expect(await again()).toEqual({ response, isReplayed: true });
    });

  it('stores nothing and undoes the changes when a failure is not kept', async () => {
    const once = onceAt(AT_MS);
    const { responses } = store.records;
    const fails: Work = async (unit) => {
      await makesPlan('undone')(unit);
      throw new Error('the work failed');
    };
    await expect(responses.performOnce(once, fails, rethrow)).rejects.toThrow('the work failed');
    expect(await exists('undone')).toBe(false);
    expect(await responses.performOnce(once, makesPlan('done'), rethrow)).toMatchObject({
      kind: 'performed',
    });
  });

  it('undoes the changes of a failure that is kept, also after a statement has failed', async () => {
    const once = onceAt(AT_MS);
    const { responses } = store.records;
    const fails: Work = async (unit) => {
      await makesPlan('half-done')(unit);
      await sql`SELECT 1 / 0`.execute(unit.db);
      return Buffer.from('never');
    };
    const kept = () => Buffer.from('kept');
    expect(await responses.performOnce(once, fails, kept)).toMatchObject({ kind: 'performed' });
    expect(await exists('half-done')).toBe(false);
    expect(await responses.performOnce(once, fails, rethrow)).toEqual({
      kind: 'stored',
      sealed: Buffer.from('kept'),
    });
  });

  it('makes the transactions of the work part of its own', async () => {
    const once = onceAt(AT_MS);
    const { responses, plans } = store.records;
    await plans.insert(samplePlan({ id: 'edited', limit: 1 }), sampleChange());
    const fails: Work = async (unit) => {
      await unit.plans.update('edited', { limit: 2 }, sampleChange());
      expect(await unit.plans.find('edited')).toMatchObject({ limit: 2 });
      throw new Error('after the inner transaction');
    };
    await expect(responses.performOnce(once, fails, rethrow)).rejects.toThrow('after the inner transaction');
    expect(await plans.find('edited')).toMatchObject({ limit: 1 });
  });

  it('lets an effect wait for the commit, and drops it when the work fails', async () => {
    const { responses } = store.records;
    const effects: string[] = [];
    const note = (effect: string, unit: UnitOfWork) =>
      unit.afterCommit(async () => void effects.push(effect));
    await responses.performOnce(
      onceAt(AT_MS),
      async (unit) => {
        await note('done', unit);
        effects.push('work is over');
        return Buffer.from('');
      },
      rethrow,
    );
    await responses.performOnce(
      onceAt(AT_MS),
      async (unit) => {
        await note('dropped', unit);
        throw new Error('failed');
      },
      () => Buffer.from('kept'),
    );
    await note('at once', store.records);
    expect(effects).toEqual(['work is over', 'done', 'at once']);
  });

  it('rejects when an effect fails after the commit, and keeps the response', async () => {
    const once = onceAt(AT_MS);
    const { responses } = store.records;
    const work: Work = async (unit) => {
      await makesPlan('published-late')(unit);
      await unit.afterCommit(() => Promise.reject(new Error('the effect failed')));
      return Buffer.from('made');
    };
    await expect(responses.performOnce(once, work, rethrow)).rejects.toThrow('the effect failed');
    expect(await exists('published-late')).toBe(true);
    expect(await responses.performOnce(once, work, rethrow)).toEqual({
      kind: 'stored',
      sealed: Buffer.from('made'),
    });
  });

  it('performs again when the response has expired, whether it was pruned or not', async () => {
    const once = onceAt(AT_MS);
    const { responses } = store.records;
    await responses.performOnce(once, makesPlan('old'), rethrow);
    const later = onceAt(AT_MS + DAY_MS + 1, once.id);
    expect(await responses.performOnce(later, makesPlan('new', 'new'), rethrow)).toMatchObject({
      kind: 'performed',
    });
    await responses.prune(later.atMs, 0);
    expect(await responses.performOnce(later, makesPlan('x'), rethrow)).toMatchObject({
      sealed: Buffer.from('new'),
    });
    await responses.prune(later.atMs + 1, 0);
    expect(await responses.performOnce(later, makesPlan('y', 'last'), rethrow)).toMatchObject({
      sealed: Buffer.from('last'),
    });
  });

  it('has a response for a day, until expired ones are removed', async () => {
    const clock = new ManualClock(Date.UTC(2020, 0, 1));
    const { responses } = store.records;
    const requests = new IdempotentRequests({ store: responses, vault: TEST_VAULT, clock });
    const count = async () => (await responses.after(undefined, 1000)).length;
    const before = await count();
    const request = {
      credential: 'root',
      grant: { scopes: [], onlyTags: [] },
      idempotencyKey: 'daily',
      content: 'the same',
    };
    await requests.perform(request, async () => ({ status: 200, headers: {}, body: {} }), rethrow);
    clock.advance(DAY_MS);
    await requests.prune();
    expect(await count()).toBe(before + 1);
    clock.advance(1);
    await requests.prune();
    expect(await count()).toBe(before);
  });

  it('keeps a response where the clock of a replica is a year ahead of the store', async () => {
    const { responses } = store.records;
    const once = onceAt(Date.now());
    await responses.performOnce(once, async () => Buffer.from('current'), rethrow);
    await responses.prune(once.atMs + 365 * DAY_MS, DAY_MS);
    expect(await responses.performOnce(once, makesPlan('again'), rethrow)).toMatchObject({ kind: 'stored' });
  });

  it('removes expired responses in parts that each end within the time of a statement, until a stop', async () => {
    const { db, responses } = store.records;
    await limitDeletions(db, 'idempotent_responses');
    await sql`INSERT INTO idempotent_responses
      SELECT sha256(n::text::bytea), '2020-01-01', '' FROM generate_series(1, 1001) AS n`.execute(db);
    const left: number[] = [];
    for (const goesOn of [false, true]) {
      await responses.prune(Date.UTC(2020, 0, 2), 0, () => goesOn);
      const { rows } = await sql`SELECT FROM idempotent_responses WHERE created_at = '2020-01-01'`.execute(
        db,
      );
      left.push(rows.length);
    }
    expect(left).toEqual([1, 0]);
  });

  it('lists all responses in pages, and replaces one that has not changed', async () => {
    const { responses } = store.records;
    for (let i = 0; i < 3; i += 1) {
      await responses.performOnce(onceAt(AT_MS), async () => Buffer.from(`listed ${i}`), rethrow);
    }
    const listed = [];
    let page = await responses.after(undefined, 2);
    while (page.length > 0) {
      listed.push(...page);
      page = await responses.after(page.at(-1)?.id, 2);
    }
    const ids = listed.map(({ id }) => id.toString('hex'));
    expect(ids).toEqual([...new Set(ids)].toSorted());
    const one = listed.find(({ sealed }) => sealed.toString() === 'listed 1') ?? rethrow('not listed');
    expect(await responses.replace(one, Buffer.from('replaced'))).toBe(true);
    expect(await responses.replace(one, Buffer.from('replaced again'))).toBe(false);
    expect(await responses.performOnce(onceAt(AT_MS, one.id), makesPlan('z'), rethrow)).toMatchObject({
      sealed: Buffer.from('replaced'),
    });
  });

  it('performs one of two requests with the same id that come at once', async () => {
    const once = onceAt(AT_MS);
    const { responses } = store.records;
    const outcomes = await Promise.all([
      responses.performOnce(once, makesPlan('first-of-two'), rethrow),
      responses.performOnce(once, makesPlan('second-of-two'), rethrow),
    ]);
    expect(outcomes.filter(({ kind }) => kind === 'performed')).toHaveLength(1);
    expect([await exists('first-of-two'), await exists('second-of-two')].toSorted()).toEqual([false, true]);
  });
});

describe('two replicas with one Postgres', () => {
  let store: TestRecords;
  let other: Records;
  beforeAll(async () => {
    store = await createPostgresRecords();
    other = await store.reopen('default');
  });
  afterAll(async () => {
    await other.close();
    await store.remove();
  });

  it('do not wait for each other: what is under way on one is under way', async () => {
    const once = onceAt(AT_MS);
    const [begun, mayEnd] = [gate(), gate()];
    const first = store.records.responses.performOnce(
      once,
      async () => {
        begun.resolve();
        await mayEnd.promise;
        return Buffer.from('by the first');
      },
      rethrow,
    );
    await begun.promise;
    expect(await other.responses.performOnce(once, async () => Buffer.from('x'), rethrow)).toEqual({
      kind: 'under_way',
    });
    mayEnd.resolve();
    await first;
    expect(await other.responses.performOnce(once, async () => Buffer.from('x'), rethrow)).toEqual({
      kind: 'stored',
      sealed: Buffer.from('by the first'),
    });
  });

  it('one performs what the other has begun when its session ends before the commit', async () => {
    const once = onceAt(AT_MS);
    const cut = store.records.responses.performOnce(
      once,
      async (unit) => {
        await unit.plans.insert(samplePlan({ id: 'cut-off' }), sampleChange());
        const { rows } = await sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`.execute(unit.db);
        await sql`SELECT pg_terminate_backend(${rows[0]?.pid})`.execute(other.db);
        return Buffer.from('never stored');
      },
      rethrow,
    );
    await expect(cut).rejects.toMatchObject({ code: 'store_unavailable' });
    const performed = await other.responses.performOnce(
      once,
      async ({ plans }) => {
        await plans.insert(samplePlan({ id: 'cut-off' }), sampleChange());
        return Buffer.from('by the other');
      },
      rethrow,
    );
    expect(performed.kind).toBe('performed');
    expect(await store.records.plans.find('cut-off')).toBeDefined();
  });

  it('use no connection beyond the one of the unit', async () => {
    const narrow = await store.reopen('default');
    const works = Array.from({ length: 12 }, (_, index) =>
      narrow.responses.performOnce(
        onceAt(AT_MS),
        async ({ plans }) => {
          const ids = [`a-${index}`, `b-${index}`];
          for (const id of ids) await plans.insert(samplePlan({ id }), sampleChange());
          return Buffer.from('done');
        },
        rethrow,
      ),
    );
    expect((await Promise.all(works)).every(({ kind }) => kind === 'performed')).toBe(true);
    await narrow.close();
  });
});
