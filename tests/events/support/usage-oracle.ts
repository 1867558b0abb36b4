import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import { TimedEvents } from '../../../src/events/timed/timed-events.ts';
import { withoutSecrets } from '../../../src/keys/secrets/secret-redactor.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { idMaker } from '../../../src/platform/id-maker.ts';
import { systemRandom } from '../../../src/platform/random.ts';
import { PostgresTimedEvents } from '../../../src/storage/postgres/events/postgres-timed-events.ts';
import type { RecordsDatabase } from '../../../src/storage/postgres/records-database.ts';

const HOUR_MS = 3_600_000;

/** Sums of a key. */
export interface UsageSum {
  readonly requests: number;
  readonly successful: number;
  readonly rateLimited: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Makes events of all usage in Postgres, as a replica does whose clock is two hours ahead: for it, the present hour is complete. */
export async function makeUsageEvents(db: RecordsDatabase): Promise<void> {
  const timed = new TimedEvents({
    store: new PostgresTimedEvents(db),
    usageCompleteUntilMs: async () => systemClock.nowMs() + 2 * HOUR_MS,
    makeId: idMaker('', systemClock, systemRandom),
    mask: withoutSecrets,
  });
  while ((await timed.run()) === 'more');
}

/** The usage over time of each key in Postgres. */
export async function usageOverTime(db: RecordsDatabase): Promise<ReadonlyMap<string, UsageSum>> {
  const { rows } = await sql<Record<keyof UsageSum, string> & { keyId: string }>`
    SELECT key_id AS "keyId", sum(requests) AS requests, sum(successful) AS successful, sum(rate_limited) AS "rateLimited",
      sum(bytes_in) AS "bytesIn", sum(bytes_out) AS "bytesOut" FROM usage_hours GROUP BY key_id`.execute(db);
  return new Map(
    rows.map(({ keyId, ...sums }) => [
      keyId,
      sumOf([Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, Number(sum)]))]),
    ]),
  );
}

function hasOtherCustomers({ data }: UsageEvent): boolean {
  return !isDeepStrictEqual(sumOf(data.byCustomer), sumOf([data]));
}

/** The sums over events of usage, each id counted once. */
function sumsByKey(events: readonly UsageEvent[]): ReadonlyMap<string, UsageSum> {
  const once = new Map(events.map((event) => [event.id, event.data]));
  const byKey = Map.groupBy(once.values(), ({ consumerApiKeyId }) => consumerApiKeyId);
  return new Map([...byKey].map(([keyId, data]) => [keyId, sumOf(data)]));
}

/** The keys whose events do not add up to their usage, or have other customers than their sums say; with how they differ. */
export function wrongUsage(
  events: readonly UsageEvent[],
  counted: ReadonlyMap<string, UsageSum>,
): readonly string[] {
  const split = events.filter(hasOtherCustomers);
  const heard = sumsByKey(events);
  const keyIds = [...new Set([...heard.keys(), ...counted.keys()])];
  return [
    ...split.map(
      ({ id, data }) => `${data.consumerApiKeyId} has customers in ${id} that differ from its sums`,
    ),
    ...keyIds
      .filter((id) => !isDeepStrictEqual(heard.get(id), counted.get(id)))
      .map((id) => `${id} ${JSON.stringify(heard.get(id))} instead of ${JSON.stringify(counted.get(id))}`),
  ];
}

/** What the oracle reads of an event of usage. */
export interface UsageEvent {
  readonly id: string;
  readonly data: UsageSum & { readonly consumerApiKeyId: string; readonly byCustomer: readonly UsageSum[] };
}

function sumOf(parts: readonly Partial<UsageSum>[]): UsageSum {
  const sum = (name: keyof UsageSum) => parts.reduce((total, part) => total + (part[name] ?? 0), 0);
  return {
    requests: sum('requests'),
    successful: sum('successful'),
    rateLimited: sum('rateLimited'),
    bytesIn: sum('bytesIn'),
    bytesOut: sum('bytesOut'),
  };
}
