import { type AuditedChange, changedFields, type RecordChange } from '../audit/audit-entry.ts';
import type { Plan } from './plan.ts';

/** A change of a plan. */
export function auditedPlan(...[before, after]: RecordChange<Plan>): AuditedChange {
  const { id } = after ?? before;
  const changes = changedFields(before && termsOf(before), after && termsOf(after));
  return { target: { type: 'plan', id, name: null, tags: [] }, changes };
}

/** The fields of a plan in the audit log: its terms, by their names in the API. */
function termsOf(plan: Plan): Readonly<Record<string, unknown>> {
  const { id: _, createdAtMs, updatedAtMs, version, ...terms } = plan;
  return terms;
}
