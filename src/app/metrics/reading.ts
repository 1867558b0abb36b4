import type { Reading } from '../../observability/metrics.ts';

/** A number that may fall. */
export function gauge(name: string, help: string, read: Reading['read']): Reading {
  return { name, help, type: 'gauge', read };
}

/** A number that only grows. */
export function counter(name: string, help: string, read: Reading['read']): Reading {
  return { name, help, type: 'counter', read };
}
