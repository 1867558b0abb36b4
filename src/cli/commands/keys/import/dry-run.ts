import { pagesOf } from '../../../../client/list-pages.ts';
import { bodyOf, type ManagementClient } from '../../../../client/management-client.ts';
import { createImportCheck } from '../../../../management/keys/import-keys.ts';
import { systemClock } from '../../../../platform/clock.ts';
import type { KeyRow } from './batches.ts';
import { faultsIn, type ImportedBatch, NO_PLAN } from './import-batch.ts';
import type { RowFault } from './row.ts';

/** Checks what can be known before keys are made: that each row keeps the rules of the gateway, and that its plan exists. */
export function dryRun(plans: ReadonlySet<string>): (rows: readonly KeyRow[]) => ImportedBatch {
  const check = createImportCheck(systemClock);
  const faultOf = (row: KeyRow): RowFault | undefined => {
    const { key } = row.content;
    const fields = check({ keys: [key] });
    if (fields.length > 0) return faultsIn({ code: 'invalid_body', fields, details: {} }, [row]).get(row);
    return key.rateLimitId == null || plans.has(key.rateLimitId) ? undefined : NO_PLAN;
  };
  return (rows) => {
    const faults = rows.flatMap((row) => {
      const fault = faultOf(row);
      return fault === undefined ? [] : [[row, fault] as const];
    });
    return { made: rows.length - faults.length, isReplayed: false, faults: new Map(faults) };
  };
}

/** The ids of all plans of a gateway. */
export async function planIds(client: ManagementClient): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  const pages = pagesOf((query) => bodyOf(client.GET('/rate-limit', { params: { query } })));
  for await (const { rateLimits } of pages) for (const { rateLimitId } of rateLimits) ids.add(rateLimitId);
  return ids;
}
