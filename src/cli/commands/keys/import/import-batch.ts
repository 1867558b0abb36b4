import { hash } from 'node:crypto';
import { type ManagementClient, readable } from '../../../../client/management-client.ts';
import { ManagementFault } from '../../../../client/management-fault.ts';
import type { KeyRow } from './batches.ts';
import type { RowFault } from './row.ts';

/** The results for the rows of a batch. */
export interface ImportedBatch {
  readonly made: number;
  /** Whether an earlier run imported the whole batch; then this is its result. */
  readonly isReplayed: boolean;
  readonly faults: ReadonlyMap<KeyRow, RowFault>;
}

/** The fault of a row whose plan does not exist. */
export const NO_PLAN: RowFault = {
  code: 'plan_not_found',
  field: 'rateLimitId',
  message: 'names no plan that exists',
};
/** The fault of a row whose secret belongs to a key already, maybe to one of an earlier row. */
const TAKEN: RowFault = {
  code: 'secret_taken',
  field: 'secret',
  message: 'belongs to a key already',
};

/**
 * Imports rows. A row that breaks a rule or names no plan fails the whole request: it is left out, and the other rows are sent again.
 * `identity` names the file: the `Idempotency-Key` of a request is made from it and from the request's content, so that a run after an
 * interrupted one gets the results of the requests that were carried out.
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
      const taken = data.results.filter(({ code }) => code !== undefined);
      for (const row of rowsOf(taken, rest)) faults.set(row, TAKEN);
      return { made: data.results.length - taken.length, isReplayed: isReplayed(response), faults };
    }
    const fault = new ManagementFault(response, error);
    const rejected = faultsIn(fault, rest);
    if (rejected.size === 0) throw fault;
    for (const [row, rowFault] of rejected) faults.set(row, rowFault);
    rest = rest.filter((row) => !rejected.has(row));
  }
  return { made: 0, isReplayed: false, faults };
}

/** Sends a batch. A replayed rejection does not count: a plan that was missing then may exist now. */
async function send(client: ManagementClient, rows: readonly KeyRow[], identity: string) {
  const body = { keys: rows.map(({ content }) => content.key), onConflict: 'skip' as const };
  for (let attempt = 0; ; attempt += 1) {
    const header = { 'Idempotency-Key': digestOf([identity, rows[0]?.number, attempt, body]) };
    const sent = await readable(client.POST('/api-keys/import', { body, params: { header } }));
    if (sent.response.ok || !isReplayed(sent.response)) return sent;
  }
}

function isReplayed(response: Response): boolean {
  return response.headers.has('Idempotency-Replayed');
}

function digestOf(content: unknown): string {
  return hash('sha256', JSON.stringify(content));
}

/** The rows that a rejection names, in its fields (`keys[3].tags`) or its results, with their faults. */
export function faultsIn(
  { code, fields, details }: Pick<ManagementFault, 'code' | 'fields' | 'details'>,
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
  for (const row of rowsOf(details.results, rows)) faults.set(row, NO_PLAN);
  return faults;
}

/** The rows that results are about. */
function rowsOf(results: readonly { readonly index: number }[], rows: readonly KeyRow[]): readonly KeyRow[] {
  return results.flatMap(({ index }) => rows[index] ?? []);
}
