import { OTHER_CUSTOMERS } from '../../limiter/customer-windows.ts';
import { isoSeconds } from '../../platform/timestamps.ts';
import { isWellFormedSecret } from '../../secrets/secret-format.ts';
import { BATCHED_TYPE } from '../event-types.ts';
import type { OutboxEvent } from '../outbox-event.ts';

const SUMS = ['requests', 'successful', 'rateLimited', 'units', 'bytesIn', 'bytesOut'] as const;

/** What was used, in sums. */
type UsageSums = Readonly<Record<(typeof SUMS)[number], number>>;

/** What a customer of a key used. */
interface CustomerSums extends UsageSums {
  readonly customerId: string;
}

/** Usage of a key in an hour that is in no event yet. */
export interface UnsentUsage extends UsageSums {
  readonly keyId: string;
  /** The first instant of the hour. Milliseconds since 1970. */
  readonly hourMs: number;
  /** Of the key, also after it was deleted. Null: it has none. */
  readonly externalId: string | null;
  readonly tags: readonly string[];
  /** Its busiest customers, at most `MOST_CUSTOMERS`, those with most requests first. */
  readonly customers: readonly CustomerSums[];
  /** Whether an event of the hour may have been made before: this is what was added since. */
  readonly isLate: boolean;
}

const HOUR_MS = 3_600_000;
/** Customers of an hour whom its event names. */
export const MOST_CUSTOMERS = 100;

/**
 * The event of a key's usage in an hour. Its id follows from the key and the hour. Usage that came too late for it is another event, with
 * another id and nothing in it but what was added. The time is the beginning of the hour, so that a receiver which sums by time
 * counts the last hour of a month in that month.
 */
export function usageHourEvent(usage: UnsentUsage, makeId: () => string): OutboxEvent {
  const { keyId, hourMs, externalId, tags, isLate } = usage;
  const from = isoSeconds(hourMs);
  const id = `usage_${keyId}_${from.slice(0, 13)}`;
  const data = {
    consumerApiKeyId: keyId,
    ...{ from, to: isoSeconds(hourMs + HOUR_MS) },
    ...presentSums(usage),
    byCustomer: byCustomer(usage),
  };
  return {
    id: isLate ? `${id}_${makeId()}` : id,
    type: BATCHED_TYPE,
    // Not masked by its form alone: a bill goes by it, and the id of a customer may look like a secret.
    subject: externalId === null || isWellFormedSecret(externalId) ? keyId : externalId,
    atMs: hourMs,
    tags,
    data: JSON.stringify(data),
  };
}

function presentSums({ requests, successful, rateLimited, units, bytesIn, bytesOut }: UsageSums): object {
  return { requests, successful, failed: requests - successful, rateLimited, units, bytesIn, bytesOut };
}

/** The busiest customers and, as `__other__`, the rest of the sums: the parts have the sums of the whole. */
function byCustomer(usage: UnsentUsage): readonly object[] {
  const named = usage.customers.map((sums) => ({ customerId: sums.customerId, ...presentSums(sums) }));
  const rest = usage.customers.reduce((left, sums) => without(left, sums), usage as UsageSums);
  return rest.requests > 0 ? [...named, { customerId: OTHER_CUSTOMERS, ...presentSums(rest) }] : named;
}

/** None below 0: a sum of units has an upper bound. */
function without(sums: UsageSums, part: UsageSums): UsageSums {
  const left = SUMS.map((name) => [name, Math.max(sums[name] - part[name], 0)]);
  return Object.fromEntries(left) as UsageSums;
}
