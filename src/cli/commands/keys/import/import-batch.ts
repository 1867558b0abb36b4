import { createHash } from 'node:crypto';
import type { ManagementClient } from '../../../../client/management-client.ts';
import { ManagementFault } from '../../../../client/management-fault.ts';
import type { KeyRow } from './batches.ts';
import type { RowFault } from './row.ts';

/** What became of the rows of a batch. */
export interface ImportedBatch {
  readonly made: number;
  /** Whether all of it was done by an earlier run, whose result this is. */
  readonly isReplayed: boolean;
  readonly faults: ReadonlyMap<KeyRow, RowFault>;
}

/** Of a row whose plan does not exist. */
export const NO_PLAN: RowFault = {
  code: 'plan_not_found',
  field: 'rateLimitId',
  message: 'names no plan that exists',
};
/** Of a row whose secret a key has already, maybe that of a row before it. */
const TAKEN: RowFault = {
  code: 'secret_taken',
  field: 'secret',
  message: 'belongs to a key already',
};

/**
 * Imports the rows but those that the gateway rejects. One that breaks a rule, or names no plan, fails a whole request: it is left out, and the others
 * are sent again. `identity` names the file: a request has an `Idempotency-Key` of it and of its own content, so that a run after one
 * that was cut off gets the results of what was done.
 */
export async function importBatch(
  client: ManagementClient,
  rows: readonly KeyRow[],
  identity: string,
): Promise<ImportedBatch> {
  const faults = new Map<KeyRow, RowFault>();
  for (let rest = rows; rest.length > 0; ) {
    const { data, error, response } = await send(client, rest, identity);
    if (data !== undefined) {
      for (const { index, code } of data.results) {
        const row = rest[index];
        if (row !== undefined && code !== undefined) faults.set(row, TAKEN);
      }
      const made = data.results.filter(({ code }) => code === undefined).length;
      return { made, isReplayed: isReplayed(response), faults };
    }
    const fault = new ManagementFault(response, error);
    const rejected = faultsIn(fault, rest);
    if (rejected.size === 0) throw fault;
    for (const [row, rowFault] of rejected) faults.set(row, rowFault);
    rest = rest.filter((row) => !rejected.has(row));
  }
  return { made: 0, isReplayed: false, faults };
}

/** A rejection of an earlier run is no result: a plan that was missing may exist by now. */
async function send(client: ManagementClient, rows: readonly KeyRow[], identity: string) {
  const body = { keys: rows.map(({ content }) => content.key), onConflict: 'skip' as const };
  for (let attempt = 0; ; attempt += 1) {
    const header = { 'Idempotency-Key': digestOf([identity, rows[0]?.number, attempt, body]) };
    const sent = await client.POST('/api-keys/import', { body, params: { header } });
    if (sent.response.ok || !isReplayed(sent.response)) return sent;
  }
}

function isReplayed(response: Response): boolean {
  return response.headers.has('Idempotency-Replayed');
}

function digestOf(content: unknown): string {
  return createHash('sha256').update(JSON.stringify(content)).digest('hex');
}

/** The rows that a rejection names, by its fields (`keys[3].tags`) or its results. */
function faultsIn(
  { code, fields, details }: ManagementFault,
  rows: readonly KeyRow[],
): Map<KeyRow, RowFault> {
  const faults = new Map<KeyRow, RowFault>();
  for (const { field, message } of fields) {
    const [, index, name = null] = /^keys\[(\d+)\](?:\.(.+))?$/.exec(field) ?? [];
    const row = rows[Number(index)];
    if (row === undefined) continue;
    const before = faults.get(row);
    faults.set(row, {
      code,
      field: before?.field ? `${before.field} ${name ?? ''}`.trimEnd() : name,
      message: before === undefined ? message : `${before.message}; ${message}`,
    });
  }
  if (code !== 'plan_not_found' || !Array.isArray(details.results)) return faults;
  for (const { index } of details.results as readonly { readonly index: number }[]) {
    const row = rows[index];
    if (row !== undefined) faults.set(row, NO_PLAN);
  }
  return faults;
}
