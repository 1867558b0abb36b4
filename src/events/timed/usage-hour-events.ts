import { isoSeconds } from '../../platform/timestamps.ts';
import { BATCHED_TYPE } from '../event-types.ts';
import type { OutboxEvent } from '../outbox-event.ts';

/** Usage of a key in an hour that is in no event yet. */
export interface UnsentUsage {
  readonly keyId: string;
  /** The first instant of the hour. Milliseconds since 1970. */
  readonly hourMs: number;
  /** Of the key, also after it was deleted. Null: it has none. */
  readonly externalId: string | null;
  readonly tags: readonly string[];
  readonly requests: number;
  readonly successful: number;
  readonly rateLimited: number;
  readonly units: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Whether an event of the hour may have been made before: this is what was added since. */
  readonly isLate: boolean;
}

const HOUR_MS = 3_600_000;

/**
 * The event of a key's usage in an hour. Its id follows from the key and the hour. Usage that came too late for it is another event, with
 * another id and nothing in it but what was added. The time is the beginning of the hour, so that a receiver which sums by time
 * counts the last hour of a month in that month.
 */
export function usageHourEvent(usage: UnsentUsage, makeId: () => string): OutboxEvent {
  const { keyId, hourMs, externalId, tags, requests, successful, rateLimited, isLate } = usage;
  const from = isoSeconds(hourMs);
  const id = `usage_${keyId}_${from.slice(0, 13)}`;
  const data = {
    consumerApiKeyId: keyId,
    ...{ from, to: isoSeconds(hourMs + HOUR_MS) },
    ...{ requests, successful, failed: requests - successful, rateLimited },
    ...{ units: usage.units, bytesIn: usage.bytesIn, bytesOut: usage.bytesOut },
  };
  return {
    id: isLate ? `${id}_${makeId()}` : id,
    type: BATCHED_TYPE,
    subject: externalId ?? keyId,
    atMs: hourMs,
    tags,
    data: JSON.stringify(data),
  };
}
