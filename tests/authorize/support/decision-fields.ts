/** Every field by which Tollgate and another gateway, or its backend, say something of a decision. */
export const DECISION_FIELDS = [
  'tollgate-key-id',
  'tollgate-plan',
  'tollgate-external-id',
  'tollgate-customer-id',
  'tollgate-key-expires',
  'tollgate-status',
  'tollgate-body',
  'tollgate-cost',
  'tollgate-authorize-token',
] as const;
