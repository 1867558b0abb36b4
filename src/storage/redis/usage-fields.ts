import type { UsageBatch } from '../../usage/live-usage.ts';
import { type Counts, noUsage, type UsageSums } from '../../usage/usage-sums.ts';

/** Fields and what to add to each, alternating, as `recordUsage` takes them. */
export function fieldsOfSums(sums: UsageSums): string[] {
  const fields = ['t', text(sums.totals)];
  for (const [hour, counts] of sums.hours) fields.push(`h${hour}`, text(counts));
  for (const [name, counts] of sums.endpoints) fields.push(`e${name}`, text(counts));
  for (const [name, counts] of sums.customers) fields.push(`c${name}`, text(counts));
  return fields;
}

/** The batch that a hash of live counts holds; undefined for an empty one. Fields of another version of the program are left out. */
export function batchOfFields(keyId: string, fields: readonly string[]): UsageBatch | undefined {
  if (fields.length === 0) return undefined;
  let id = 0;
  const sums: UsageSums = noUsage();
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const field = fields[index] ?? '';
    const value = fields[index + 1] ?? '';
    const name = field.slice(1);
    if (field === 'id') id = Number(value);
    else if (field === 't') Object.assign(sums.totals, countsOf(value));
    else if (field.startsWith('e')) sums.endpoints.set(name, countsOf(value));
    else if (field.startsWith('c')) sums.customers.set(name, countsOf(value));
    else if (field.startsWith('h')) sums.hours.set(Number(name), countsOf(value));
  }
  return { keyId, id, sums };
}

function text(counts: Counts): string {
  return `${counts.requests} ${counts.successful} ${counts.forwarded} ${counts.forwardedUs}`;
}

function countsOf(value: string): Counts {
  const [requests = 0, successful = 0, forwarded = 0, forwardedUs = 0] = value.split(' ').map(Number);
  return { requests, successful, forwarded, forwardedUs };
}
