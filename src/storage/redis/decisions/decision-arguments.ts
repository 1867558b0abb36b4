import { customerWindowName, OTHER_CUSTOMERS } from '../../../limiter/customer-windows.ts';
import type { Limit } from '../../../limiter/limit.ts';
import type { LimitSubject } from '../../../limiter/rate-limiter.ts';
import { customersKey, versionKey, windowKey } from '../key-names.ts';

/** The arguments of the script for a list of limits, built once for each list. */
interface LimitArguments {
  /** The limits, if all are enforced, of the key and without an end; otherwise undefined. */
  readonly plain: string | undefined;
  /** The limit and its period, if the list is one plain limit; otherwise undefined. */
  readonly single: string | undefined;
  readonly each: string;
  readonly hasCustomers: boolean;
}

const argumentsByList = new WeakMap<readonly Limit[], LimitArguments>();

/** The last words of a decision's ARGV: the cost and the limits. */
export function limitArgumentsOf({ limits, cost }: LimitSubject): string {
  if (limits.length === 0) return '-';
  const { plain, single, hasCustomers, each } = argumentsOf(limits);
  if (cost === 1 && single !== undefined) return single;
  if (cost > 0 && plain !== undefined) return `=${cost} ${plain}`;
  return `${hasCustomers ? '**' : '*'} ${cost} ${each}`;
}

/** The script's KEYS for a decision. */
export function decisionKeysOf({ keyId, limits, customerId }: LimitSubject): readonly string[] {
  const first = limits[0];
  if (first === undefined) return [versionKey(keyId)];
  // Nearly all plans have one limit, of the key: an array literal takes less memory than an array that grows.
  if (limits.length === 1 && first.per === 'key') {
    return [versionKey(keyId), windowKey(keyId, first.windowName)];
  }
  const keys = [versionKey(keyId)];
  for (const limit of limits) {
    if (limit.per === 'key') {
      keys.push(windowKey(keyId, limit.windowName));
    } else {
      keys.push(windowKey(keyId, customerWindowName(limit, customerId)));
      keys.push(windowKey(keyId, customerWindowName(limit, OTHER_CUSTOMERS)));
    }
  }
  if (argumentsOf(limits).hasCustomers) keys.push(customersKey(keyId));
  return keys;
}

function argumentsOf(limits: readonly Limit[]): LimitArguments {
  const known = argumentsByList.get(limits);
  if (known !== undefined) return known;
  const plain = limits.every(isPlain) ? limits.map(({ limit }) => limit).join(' ') : undefined;
  const made = {
    plain,
    single: plain !== undefined && limits.length === 1 ? `${plain} ${limits[0]?.period.token}` : undefined,
    each: JSON.stringify(limits.flatMap((limit) => [kindOf(limit), limitValue(limit), limit.period.token])),
    hasCustomers: limits.some(({ per }) => per === 'customer'),
  };
  argumentsByList.set(limits, made);
  return made;
}

function isPlain({ mode, per, endsAtMs }: Limit): boolean {
  return mode === 'enforce' && per === 'key' && endsAtMs === null;
}

function kindOf({ mode, per }: Limit): number {
  return (mode === 'shadow' ? 1 : 0) + (per === 'customer' ? 2 : 0);
}

function limitValue({ limit, baseLimit, endsAtMs }: Limit): number | readonly number[] {
  return endsAtMs === null ? limit : [limit, endsAtMs, baseLimit];
}
