import type { AuditTarget } from '../audit/audit-entry.ts';
import type { Plan } from './plan.ts';

/** The fields of a plan in the audit log: its terms, by their names in the API. */
export function auditedPlan(plan: Plan): Readonly<Record<string, unknown>> {
  const { id: _, createdAtMs, updatedAtMs, version, ...terms } = plan;
  return terms;
}

export function planTarget({ id }: Plan): AuditTarget {
  return { type: 'plan', id, name: null, tags: [] };
}
