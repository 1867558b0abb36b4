import { copyFile, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { digestOf, writtenPlan } from '../../src/desired-state/written-state.ts';
import { canonicalFault, canonicalPattern } from '../../src/paths/canonical-pattern.ts';
import type { PathPattern } from '../../src/paths/path-pattern.ts';
import type { PathCase } from '../../src/paths/path-readings.ts';
import type { Plan } from '../../src/plans/plan.ts';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import { MIGRATIONS, openTestRecords } from '../support/records.ts';
import { createTestDatabase } from '../support/stores.ts';

const CANONICAL_PATTERNS = '0010_canonical_patterns.sql';
/** Patterns as plans could have them before; some become equal. */
const STORED_PATTERNS = [
  ...[
    '/',
    '/**',
    '/v1/search/**',
    '/V1/Search/**',
    '/v1/%73earch',
    '/v1/%53earch',
    '/users/',
    '/Users/{userId}/*',
  ],
  ...[
    '/a%2Fb',
    '/a%2fb/',
    '/a%20b',
    '/caf%c3%a9',
    '/%2A/%2a',
    '/a%2Ab',
    '/%7BId%7D',
    '/100%25',
    '/%2541',
    '/{a%20B}',
  ],
  ...[
    '/{A;b}',
    '/a;b/C',
    '/a%3Bb',
    '/a%2F%2FB',
    '/%2E%2e/A',
    '/A%5cb',
    '/A%00',
    '/a%3FB',
    '/a%23B',
    '/~B:@!$&',
    '/%7EB',
  ],
];
const STORED_LISTS = {
  additionalLimits: [
    { limitId: 'Burst', limit: 2, period: 'Second' },
    ...[
      {
        limitId: 'All',
        limit: 999_999_999_999_999,
        period: '1 Day',
        match: STORED_PATTERNS.map((path) => ({ path })),
      },
      {
        ...{ limitId: 'Some', limit: 3, period: 'hour', per: 'customer' as const, mode: 'shadow' as const },
        match: [{ methods: ['GET', 'POST'], path: '/V1/A' }],
      },
    ],
  ],
  costs: [
    ...STORED_PATTERNS.map((path, cost) => ({ path, cost })),
    { methods: ['PUT'], path: '/V1/Tokens', cost: 'response' as const, reserve: 7 },
  ],
};
const NO_LISTS = { additionalLimits: [], costs: [] };
const STORED_PLANS: readonly Plan[] = ['managed', 'changed-elsewhere', 'plain'].map((id) => ({
  ...{ id, description: 'A/B "\\\u0001\u00c9\n\u2028', limit: 1000, period: 'Hour', managedBy: 'Owner' },
  ...{ createdAtMs: 1_700_000_000_000, updatedAtMs: 1_700_000_000_000, version: 3 },
  ...(id === 'plain' ? NO_LISTS : STORED_LISTS),
}));

async function insertPlan({ db }: Records, plan: Plan): Promise<void> {
  const digest = plan.id === 'changed-elsewhere' ? Buffer.alloc(32) : digestOf(writtenPlan(plan));
  await sql`INSERT INTO plans (id, description, "limit", period, created_at, updated_at, version, additional_limits, costs,
      managed_by, managed_digest)
    VALUES (${plan.id}, ${plan.description}, ${plan.limit}, ${plan.period}, ${new Date(plan.createdAtMs)},
      ${new Date(plan.updatedAtMs)}, ${plan.version}, ${JSON.stringify(plan.additionalLimits)}::jsonb,
      ${JSON.stringify(plan.costs)}::jsonb, ${plan.managedBy}, ${digest})`.execute(db);
}

/** Lists with each pattern in canonical form, if it has one. */
function canonicalLists({ additionalLimits, costs }: Plan, pathCase: PathCase) {
  const canonical = <Pattern extends PathPattern>(pattern: Pattern): Pattern => {
    const path = canonicalPattern(pattern.path, pathCase);
    return canonicalFault(path) === undefined ? { ...pattern, path } : pattern;
  };
  return {
    additionalLimits: additionalLimits.map((limit) =>
      limit.match === undefined ? limit : { ...limit, match: limit.match.map(canonical) },
    ),
    costs: costs.map(canonical),
  };
}

describe('the migration of the patterns of plans', () => {
  it.each(['insensitive', 'sensitive'] as const)(
    'brings them into canonical form, with the case %s, and changes nothing else',
    async (pathCase) => {
      const directory = await mkdtemp(join(tmpdir(), 'tollgate-sql-'));
      const before = (await readdir(MIGRATIONS)).filter((name) => name < '0010');
      await Promise.all(before.map((name) => copyFile(join(MIGRATIONS, name), join(directory, name))));
      const database = await createTestDatabase();
      const schema = { migrationsDirectory: directory, defaultPlanId: null, chainSecrets: null };
      const records = openTestRecords(database.url, { ...schema, pathCase });
      try {
        await records.migrate();
        await Promise.all(STORED_PLANS.map((plan) => insertPlan(records, plan)));
        await copyFile(join(MIGRATIONS, CANONICAL_PATTERNS), join(directory, CANONICAL_PATTERNS));
        expect(await records.migrate()).toEqual([CANONICAL_PATTERNS.replace('.sql', '')]);
        for (const plan of STORED_PLANS) {
          const { rows } = await sql<{ managed_digest: Buffer }>`SELECT managed_digest FROM plans
            WHERE id = ${plan.id}`.execute(records.db);
          const after = await records.plans.find(plan.id);
          expect(after).toEqual({ ...plan, ...canonicalLists(plan, pathCase) });
          const isKept = rows[0]?.managed_digest.equals(digestOf(writtenPlan(after ?? plan)));
          expect([plan.id, isKept]).toEqual([plan.id, plan.id !== 'changed-elsewhere']);
        }
        const { rows } = await sql`SELECT proname FROM pg_proc WHERE proname LIKE 'canonical%'`.execute(
          records.db,
        );
        expect(rows).toEqual([]);
      } finally {
        await records.close();
        await database.drop();
        await rm(directory, { recursive: true });
      }
    },
  );
});
