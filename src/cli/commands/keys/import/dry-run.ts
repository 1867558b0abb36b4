import { pagesOf } from '../../../../client/list-pages.ts';
import { bodyOf, type ManagementClient } from '../../../../client/management-client.ts';
import type { KeyRow } from './batches.ts';
import { type ImportedBatch, NO_PLAN } from './import-batch.ts';
import type { RowFault } from './row.ts';

/** Checks what can be known before keys are made: each row has a name and a secret or its digest, and its plan exists. */
export function dryRun(plans: ReadonlySet<string>): (rows: readonly KeyRow[]) => ImportedBatch {
  return (rows) => {
    const faults = rows.flatMap((row) => {
      const fault = faultOf(row, plans);
      return fault === undefined ? [] : [[row, fault] as const];
    });
    return { made: rows.length - faults.length, isReplayed: false, faults: new Map(faults) };
  };
}

function faultOf({ content: { key } }: KeyRow, plans: ReadonlySet<string>): RowFault | undefined {
  if (!key.name) return { code: 'invalid_row', field: 'name', message: 'is required' };
  if ((key.secret === undefined) === (key.secretHash === undefined))
    return { code: 'invalid_row', field: 'secret', message: 'is required, or secretHash, but not both' };
  return key.rateLimitId == null || plans.has(key.rateLimitId) ? undefined : NO_PLAN;
}

/** The ids of all plans of a gateway. */
export async function planIds(client: ManagementClient): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  const pages = pagesOf((query) => bodyOf(client.GET('/rate-limit', { params: { query } })));
  for await (const { rateLimits } of pages) for (const { rateLimitId } of rateLimits) ids.add(rateLimitId);
  return ids;
}
