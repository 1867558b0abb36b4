import { customerWindowName, type Limit, OTHER_CUSTOMERS } from '../../../limiter/limit.ts';
import type { LimitSubject } from '../../../limiter/rate-limiter.ts';
import { customersKey, versionKey, windowKey } from '../key-names.ts';

/** What a list of limits is to the script: made once for each list. */
interface LimitWords {
  /** Of one enforced limit without more to it, at a cost of 1; undefined for any other list. */
  readonly plain: string | undefined;
  readonly each: string;
  readonly hasCustomers: boolean;
}

const wordsOfLists = new WeakMap<readonly Limit[], LimitWords>();

/** The last words of the script's ARGV: what the limits are. */
export function limitWordsOf({ limits, cost }: LimitSubject): string {
  if (limits.length === 0) return '-';
  const { plain, hasCustomers, each } = wordsOf(limits);
  if (cost === 1 && plain !== undefined) return plain;
  return `${hasCustomers ? '**' : '*'} ${cost} ${each}`;
}

/** The script's KEYS for a decision. */
export function decisionKeysOf({ keyId, limits, customerId }: LimitSubject): readonly string[] {
  const keys = [versionKey(keyId)];
  if (limits.length === 0) return keys;
  for (const limit of limits) {
    if (limit.per === 'key') {
      keys.push(windowKey(keyId, limit.windowName));
    } else {
      keys.push(windowKey(keyId, customerWindowName(limit, customerId)));
      keys.push(windowKey(keyId, customerWindowName(limit, OTHER_CUSTOMERS)));
    }
  }
  if (wordsOf(limits).hasCustomers) keys.push(customersKey(keyId));
  return keys;
}

function wordsOf(limits: readonly Limit[]): LimitWords {
  const known = wordsOfLists.get(limits);
  if (known !== undefined) return known;
  const [first] = limits;
  const isPlain =
    limits.length === 1 && first?.mode === 'enforce' && first.per === 'key' && first.endsAtMs === null;
  const words = {
    plain: isPlain ? `${first.limit} ${first.period.token}` : undefined,
    each: JSON.stringify(limits.flatMap((limit) => [kindOf(limit), limitValue(limit), limit.period.token])),
    hasCustomers: limits.some(({ per }) => per === 'customer'),
  };
  wordsOfLists.set(limits, words);
  return words;
}

function kindOf({ mode, per }: Limit): number {
  return (mode === 'shadow' ? 1 : 0) + (per === 'customer' ? 2 : 0);
}

function limitValue({ limit, baseLimit, endsAtMs }: Limit): number | readonly number[] {
  return endsAtMs === null ? limit : [limit, endsAtMs, baseLimit];
}
