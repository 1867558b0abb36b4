import { randomBytes } from 'node:crypto';
import type { ChangeContext } from '../../src/audit/change-context.ts';
import type { NewConsumerKey } from '../../src/keys/key-repository.ts';
import type { Plan } from '../../src/plans/plan.ts';
import type { Records } from '../../src/storage/postgres/open-records.ts';

const AT_MS = Date.UTC(2025, 0, 31, 12, 34, 56, 789);
let made = 0;

/** A key that differs from all others; `fields` replace what a test cares about. */
export function sampleKey(fields: Partial<NewConsumerKey> = {}): NewConsumerKey {
  made += 1;
  return {
    id: `key_${String(made).padStart(26, '0')}`,
    name: `key number ${made}`,
    createdAtMs: AT_MS,
    updatedAtMs: AT_MS,
    version: 1,
    enabled: true,
    expiresAtMs: null,
    planId: null,
    lookup: randomBytes(32),
    sealedSecret: randomBytes(69),
    overrides: {},
    externalId: null,
    tags: [],
    metadata: null,
    allowedIps: null,
    allowedOrigins: null,
    selfService: [],
    managedBy: null,
    secretHint: 'tg_abcd…wxyz',
    rotation: null,
    secretOrigin: 'generated',
    digestLookup: randomBytes(32),
    sealedDigest: null,
    lastUsedAtMs: null,
    ...fields,
  };
}

/** A plan that differs from all others; `fields` replace what a test cares about. */
export function samplePlan(fields: Partial<Plan> = {}): Plan {
  made += 1;
  return {
    id: `plan-${made}`,
    description: 'a plan of a test',
    limit: 10,
    period: '15 minutes',
    additionalLimits: [],
    costs: [],
    createdAtMs: AT_MS,
    updatedAtMs: AT_MS,
    version: 1,
    managedBy: null,
    ...fields,
  };
}

/** A change by the root token. */
export function sampleChange(fields: Partial<ChangeContext> = {}): ChangeContext {
  return {
    actor: { type: 'root', id: null, name: 'root' },
    atMs: AT_MS,
    reason: null,
    requestId: 'request-of-a-test',
    address: '127.0.0.1',
    onlyTags: [],
    expects: undefined,
    ...fields,
  };
}

/** Stores a new key. `fields` replace what a test cares about. */
export async function storeKey(
  { keys }: Pick<Records, 'keys'>,
  fields: Partial<NewConsumerKey> = {},
): Promise<NewConsumerKey> {
  const key = sampleKey(fields);
  await keys.insert(key, sampleChange());
  return key;
}

/** What one import may hold: a statement has a bounded number of parameters. */
const KEYS_OF_AN_IMPORT = 500;

/** Stores many new keys. One after the other would take ten times as long, because each change waits for the audit log. */
export async function storeKeys({ secrets }: Records, keys: readonly NewConsumerKey[]): Promise<void> {
  const imported = keys.map((key) => ({
    key,
    match: { lookups: key.lookup === null ? [] : [key.lookup], digestLookups: [], isReserved: false },
  }));
  for (let from = 0; from < imported.length; from += KEYS_OF_AN_IMPORT) {
    const some = imported.slice(from, from + KEYS_OF_AN_IMPORT);
    await secrets.import(some, { onConflict: 'fail', action: 'key.import' }, sampleChange());
  }
}
