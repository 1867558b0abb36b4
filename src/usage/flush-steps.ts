/** What moving counts to the history consists of, in this order. Whatever happens after any of them, nothing is lost or counted twice. */
export const FLUSH_STEPS = [
  'claimed',
  'taken',
  'begun',
  'totals_added',
  'endpoints_added',
  'customers_added',
  'hours_added',
  'committed',
  'dropped',
  'settled',
] as const;
export type FlushStep = (typeof FLUSH_STEPS)[number];

/** Told when a step is done, before the next begins. For tests that end the process there, and for nothing else. */
export type OnFlushStep = (step: FlushStep) => void;
