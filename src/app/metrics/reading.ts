import type { Reading } from '../../observability/metrics.ts';

/** A metric whose value may fall. */
export function gauge(name: string, help: string, read: Reading['read']): Reading {
  return { name, help, type: 'gauge', read };
}

/** A metric whose value only grows. */
export function counter(name: string, help: string, read: Reading['read']): Reading {
  return { name, help, type: 'counter', read };
}
