import { isDeepStrictEqual } from 'node:util';
import { bodyOf, type ManagementClient } from '../../../client/management-client.ts';
import { isTag } from '../../../keys/key-tags.ts';
import { systemRandom } from '../../../platform/random.ts';
import { digestOfSecret, digestOfText, SECRET_DIGEST } from '../../../secrets/secret-digest.ts';
import { GIVEN_SECRET, MIN_SECRET_LENGTH } from '../../../secrets/secret-format.ts';
import type { Session } from '../../api/session.ts';
import { CommandFault } from '../../command-fault.ts';
import type { Listing } from '../../output/columns.ts';
import { batchesOf, MAX_BATCH_ROWS } from '../keys/import/batches.ts';
import { dryRun, planIds } from '../keys/import/dry-run.ts';
import { importBatch } from '../keys/import/import-batch.ts';
import type { KeyToImport, Row } from '../keys/import/row.ts';
import type { ForeignKey, ForeignKeys, LeftOut } from './foreign-keys.ts';
import { type NewPlan, planFor } from './plan-for.ts';

export interface ImportFromOptions {
  readonly dryRun?: boolean;
  readonly shortKeys?: boolean;
}

/** The result of an import, as JSON shows it. */
interface ImportReport {
  readonly source: string;
  readonly dryRun: boolean;
  /** Ids of plans; in a dry run those that would be made. */
  readonly plans: { readonly made: readonly string[]; readonly present: readonly string[] };
  readonly keys: { readonly made: number; readonly present: number; readonly notCarried: number };
  readonly notCarried: readonly LeftOut[];
}

/** Makes the plans and the keys of another gateway, and writes what could not be carried over. Throws if a key is among it. */
export async function importKeysFrom(
  session: Session,
  source: string,
  { keys, leftOut, ...options }: ForeignKeys & ImportFromOptions,
): Promise<void> {
  const { plans, rows, repeated, leftOut: more } = await translated(source, keys, options.shortKeys === true);
  const { client, output } = session;
  const present = await planIds(client);
  const made = [...plans.values()].filter(({ rateLimitId }) => !present.has(rateLimitId));
  if (!options.dryRun)
    for (const plan of made) await bodyOf(client.POST('/rate-limit/create', { body: plan }));
  const known = new Set([...present, ...plans.keys()]);
  const imported = await importRows(client, rows, options.dryRun ? known : undefined);
  const notCarried = [...leftOut, ...more, ...imported.leftOut];
  const lost = notCarried.filter(({ what }) => what === 'key').length;
  const report: ImportReport = {
    source,
    dryRun: options.dryRun === true,
    plans: {
      made: made.map(({ rateLimitId }) => rateLimitId),
      present: [...plans.keys()].filter((id) => present.has(id)),
    },
    keys: { made: imported.made, present: imported.present + repeated, notCarried: lost },
    notCarried,
  };
  if (notCarried.length > 0 || output.format !== 'table')
    await output.report(NOT_CARRIED, notCarried, report);
  output.note(summaryOf(report));
  if (lost > 0) throw new CommandFault('fault', 'Not every key could be carried over.');
}

interface Translated {
  readonly plans: ReadonlyMap<string, NewPlan>;
  readonly rows: readonly Row[];
  /** The number of keys that are the same as one before them, as where pages of a list overlap. */
  readonly repeated: number;
  readonly leftOut: readonly LeftOut[];
}

async function translated(
  source: string,
  keys: readonly ForeignKey[],
  shortKeys: boolean,
): Promise<Translated> {
  const plans = new Map<string, NewPlan>();
  const rows: Row[] = [];
  const leftOut: LeftOut[] = [];
  const byDigest = new Map<string, KeyToImport>();
  let repeated = 0;
  for (const key of keys) {
    const { plan, leftOut: limits } = planFor(source, key.name, key.limits);
    leftOut.push(...limits, ...unusableTags(key));
    const secret = secretOf(key, shortKeys);
    if ('reason' in secret) {
      leftOut.push({ what: 'key', name: key.name, reason: secret.reason });
      continue;
    }
    const content = { key: keyToImport(key, secret, plan?.rateLimitId) };
    const digest = digestIn(secret);
    const earlier = byDigest.get(digest);
    if (earlier !== undefined) {
      const reason = `has the secret of ${earlier.name}, which comes before it`;
      if (isDeepStrictEqual(earlier, content.key)) repeated += 1;
      else leftOut.push({ what: 'key', name: key.name, reason });
      continue;
    }
    byDigest.set(digest, content.key);
    if (plan !== undefined) plans.set(plan.rateLimitId, plan);
    rows.push({ number: rows.length + 1, text: '', content });
  }
  return { plans, rows, repeated, leftOut: withoutRepetition(leftOut) };
}

function keyToImport(
  { name, externalId, tags = [], enabled = true, expiresAt, metadata = {} }: ForeignKey,
  secret: Pick<KeyToImport, 'secret' | 'secretHash'>,
  rateLimitId: string | undefined,
): KeyToImport {
  const usable = [...new Set(tags.map((tag) => tag.toLowerCase()))].filter(isTag).toSorted();
  return {
    name,
    ...secret,
    enabled,
    ...(rateLimitId !== undefined && { rateLimitId }),
    ...(externalId !== undefined && { externalId }),
    ...(usable.length > 0 && { tags: usable }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
}

/** A key that is too short for this gateway can be imported by its digest. */
function secretOf(
  { secret }: ForeignKey,
  shortKeys: boolean,
): Pick<KeyToImport, 'secret' | 'secretHash'> | { readonly reason: string } {
  const hash = (value: string) => ({ secretHash: { algorithm: 'sha256' as const, value } });
  if ('sha256' in secret) return hash(secret.sha256);
  const { text } = secret;
  if (!GIVEN_SECRET.test(text))
    return { reason: 'has characters that an Authorization header can not carry' };
  if (text.length >= MIN_SECRET_LENGTH) return { secret: text };
  return shortKeys
    ? hash(digestOfSecret(text).toString('hex'))
    : { reason: `has fewer than ${MIN_SECRET_LENGTH} characters: --short-keys imports it by its digest` };
}

/** By which two keys with one secret are found, also if one of them has only its digest. */
function digestIn({ secret = '', secretHash }: Pick<KeyToImport, 'secret' | 'secretHash'>): string {
  if (secretHash === undefined) return digestOfSecret(secret).toString('hex');
  const { value } = secretHash;
  // The gateway names a value that is no digest.
  return SECRET_DIGEST.test(value) ? digestOfText(value).toString('hex') : value;
}

function unusableTags({ name, tags = [] }: ForeignKey): readonly LeftOut[] {
  return tags
    .filter((tag) => !isTag(tag.toLowerCase()))
    .map((tag) => ({ what: 'tag', name, reason: `${JSON.stringify(tag)} has another form than tags here` }));
}

/** The keys of one consumer lose the same things; each key that is lost is named. */
function withoutRepetition(leftOut: readonly LeftOut[]): readonly LeftOut[] {
  const others = new Map(leftOut.map((one) => [JSON.stringify(one), one]));
  return leftOut.filter((one) => one.what === 'key' || others.get(JSON.stringify(one)) === one);
}

interface ImportedRows {
  readonly made: number;
  readonly present: number;
  readonly leftOut: readonly LeftOut[];
}

/** Imports rows, or with the ids of plans checks them. A key whose secret is taken is present: it was imported before. */
async function importRows(
  client: ManagementClient,
  rows: readonly Row[],
  knownPlans: ReadonlySet<string> | undefined,
): Promise<ImportedRows> {
  const check = knownPlans === undefined ? undefined : dryRun(knownPlans);
  const identity = systemRandom.bytes(16).toString('hex');
  const leftOut: LeftOut[] = [];
  const names = new Map(
    rows.map(({ number, content }) => [number, 'key' in content ? content.key.name : '']),
  );
  let [made, present] = [0, 0];
  for await (const batch of batchesOf(rows, MAX_BATCH_ROWS)) {
    const result = check?.(batch.rows) ?? (await importBatch(client, batch.rows, identity));
    made += result.made;
    for (const [{ content }, { code, field, message }] of result.faults) {
      if (code === 'secret_taken') present += 1;
      else leftOut.push({ what: 'key', name: content.key.name, reason: `${field ?? ''} ${message}`.trim() });
    }
    for (const { number, content } of batch.faulty)
      leftOut.push({ what: 'key', name: names.get(number) ?? '', reason: content.fault.message });
  }
  return { made, present, leftOut };
}

function summaryOf({ dryRun: isDry, plans, keys, notCarried }: ImportReport): string {
  const made = isDry ? 'to make' : 'made';
  return (
    `${isDry ? 'Dry run, nothing was made. ' : ''}Plans: ${plans.made.length} ${made}, ${plans.present.length} there already. ` +
    `Keys: ${keys.made} ${made}, ${keys.present} there already, ${keys.notCarried} not carried over. ` +
    `Other things not carried over: ${notCarried.length - keys.notCarried}.`
  );
}

const NOT_CARRIED: Listing<LeftOut> = {
  columns: [
    { name: 'what', toCell: ({ what }) => what },
    { name: 'name', toCell: ({ name }) => name },
    { name: 'reason', toCell: ({ reason }) => reason },
  ],
  idOf: ({ what, name }) => `${what} ${name}`,
  isWhole: true,
};
