import { sql } from 'kysely';
import { auditedKey } from '../../../keys/audited-key.ts';
import { recordOf } from '../../../keys/new-key.ts';
import type { ImportedKey, ImportFailure, ImportOptions } from '../../../keys/secrets/secret-repository.ts';
import type { SecretMatch } from '../../../keys/secrets/stored-secret.ts';
import { bytesArray } from '../array-literals.ts';
import type { NoteAction } from '../audit/audited-changes.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { hasTags, insertNewKeys } from './key-rows.ts';

/** `SecretRepository.import`, within a transaction. */
export async function importKeys(
  trx: RecordsDatabase,
  keys: readonly ImportedKey[],
  { onConflict, action, note }: ImportOptions & { readonly note: NoteAction },
): Promise<readonly (ImportFailure | undefined)[]> {
  const plans = await lockedPlans(trx, keys);
  const withoutPlan = keys.map(({ key: { planId } }) =>
    planId === null || plans.has(planId) ? undefined : 'plan_not_found',
  );
  if (withoutPlan.includes('plan_not_found')) return withoutPlan;
  await beginImport(trx);
  const taken = await takenOf(
    trx,
    keys.map(({ match }) => match),
  );
  const failures = taken.map((isSecretTaken) => (isSecretTaken ? 'secret_taken' : undefined));
  const stored = keys.filter((_key, index) => failures[index] === undefined);
  if (stored.length === 0 || (onConflict === 'fail' && stored.length < keys.length)) return failures;
  await insertNewKeys(trx, stored);
  for (const { key } of stored) note({ action, ...auditedKey(null, recordOf(key)) });
  return failures;
}

/**
 * Begins an import, in a transaction that stores secrets from outside. From here on such transactions run one after the other, so that none
 * misses a secret that another one stores. The raised version tells every replica of the import once the transaction is committed.
 */
export async function beginImport(trx: RecordsDatabase): Promise<void> {
  await trx
    .updateTable('secret_imports')
    .set((set) => ({ version: set('version', '+', 1) }))
    .execute();
}

/** For a transaction that locks keys before `beginImport`: takes its lock before those of the keys, as all other transactions do. */
export async function lockImports(trx: RecordsDatabase): Promise<void> {
  await sql`SELECT FROM secret_imports FOR UPDATE`.execute(trx);
}

/** For each new secret, whether it is taken, or equal to an earlier one of the list. After `beginImport` that stays true. */
export async function takenOf(
  trx: RecordsDatabase,
  matches: readonly SecretMatch[],
): Promise<readonly boolean[]> {
  const taken = await takenValues(trx, matches);
  return matches.map((match) => !claim(match, taken));
}

interface TakenRow {
  readonly lookup: Uint8Array;
  readonly digest_lookup: Uint8Array;
}

/** Whether a key has this secret, or another kind of credential is equal to it. */
export async function isTaken(db: RecordsDatabase, match: SecretMatch): Promise<boolean> {
  return match.isReserved || (await takenValues(db, [match])).size > 0;
}

/** How many of the secrets a key has that lacks one of the tags, or are credentials of another kind. */
export async function countOutOfSight(
  db: RecordsDatabase,
  matches: readonly SecretMatch[],
  onlyTags: readonly string[],
): Promise<number> {
  const taken = await takenValues(db, matches, sql<boolean>`not ${hasTags(onlyTags)}`);
  return matches.filter((match) => match.isReserved || valuesOf(match).some((value) => taken.has(value)))
    .length;
}

/** The look-up values, as base64, of the keys' present and previous secrets that match one of these secrets. */
async function takenValues(
  db: RecordsDatabase,
  matches: readonly SecretMatch[],
  isAmong = sql<boolean>`true`,
): Promise<Set<string>> {
  const lookups = bytesArray(matches.flatMap((match) => match.lookups));
  const digestLookups = bytesArray(matches.flatMap((match) => match.digestLookups));
  const { rows } = await sql<TakenRow>`
    select lookup, digest_lookup from consumer_keys
    where (lookup = any (${lookups}) or digest_lookup = any (${digestLookups})) and ${isAmong}
    union all
    select previous.lookup, previous.digest_lookup from previous_secrets as previous
    join consumer_keys on consumer_keys.id = previous.key_id
    where (previous.lookup = any (${lookups}) or previous.digest_lookup = any (${digestLookups})) and ${isAmong}`.execute(
    db,
  );
  return new Set(
    rows.flatMap(({ lookup, digest_lookup: digestLookup }) => [textOf(lookup), textOf(digestLookup)]),
  );
}

/** Takes a secret if it is free. False if it is reserved or taken already. */
function claim(match: SecretMatch, taken: Set<string>): boolean {
  const values = valuesOf(match);
  if (match.isReserved || values.some((value) => taken.has(value))) return false;
  for (const value of values) taken.add(value);
  return true;
}

function valuesOf({ lookups, digestLookups }: SecretMatch): readonly string[] {
  return [...lookups, ...digestLookups].map(textOf);
}

function textOf(value: Uint8Array): string {
  return Buffer.from(value).toString('base64');
}

/** The plans of these keys that exist, locked against deletion, but not against changes, until the transaction ends. */
async function lockedPlans(trx: RecordsDatabase, keys: readonly ImportedKey[]): Promise<ReadonlySet<string>> {
  const ids = [...new Set(keys.flatMap(({ key: { planId } }) => planId ?? []))];
  if (ids.length === 0) return new Set();
  const plans = trx.selectFrom('plans').select('id').where('id', 'in', ids);
  const rows = await plans.orderBy('id').forKeyShare().execute();
  return new Set(rows.map(({ id }) => id));
}
