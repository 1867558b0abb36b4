import { CommandFault } from '../../command-fault.ts';
import {
  type Entity,
  type ForeignKey,
  type ForeignKeys,
  type ForeignLimit,
  instant,
  type Leave,
  type LeftOut,
  objectOf,
  objectsOf,
  textOf,
} from './foreign-keys.ts';

/**
 * The keys of responses of Unkey's `apis.listKeys`: one of them, a list of them, also as Unkey's client returns them (in `result`), or the keys
 * alone. A key has its secret (`plaintext`) if it is recoverable and `decrypt` was set, or, from the database of an own installation, its `hash`.
 */
export function readUnkey(file: unknown, nowMs: number): ForeignKeys {
  const keys: ForeignKey[] = [];
  const leftOut: LeftOut[] = [];
  for (const row of rowsOf(file)) {
    const id = textOf(row.keyId ?? row.id);
    if (id === undefined)
      throw new CommandFault('usage', 'The file is not a response of apis.listKeys: an entry has no keyId.');
    const name = textOf(row.name) ?? id;
    const leave: Leave = (what, reason) => leftOut.push({ what, name, reason });
    const secret = secretOf(row);
    if (typeof row.expires === 'number' && row.expires <= nowMs) leave('expired key', 'has expired');
    else if (secret === undefined) leave('key', 'the file has neither its plaintext nor its hash');
    else keys.push(keyOf(row, { name, secret }, leave));
  }
  return { keys, leftOut };
}

function keyOf(row: Entity, key: Pick<ForeignKey, 'name' | 'secret'>, leave: Leave): ForeignKey {
  const externalId = textOf(objectOf(row.identity).externalId ?? row.externalId ?? row.ownerId);
  for (const part of ['permissions', 'roles'])
    if (Array.isArray(row[part]) && row[part].length > 0) leave(part, 'keys have none here');
  return {
    ...key,
    limits: limitsOf(row, leave),
    enabled: row.enabled !== false && !isUsedUp(creditsIn(row)),
    metadata: objectOf(row.meta),
    ...(typeof row.expires === 'number' && { expiresAt: instant(row.expires) }),
    ...(externalId !== undefined && { externalId }),
  };
}

function rowsOf(file: unknown): readonly Entity[] {
  const pages = Array.isArray(file) ? objectsOf(file) : [objectOf(file)];
  return pages.flatMap((page) => {
    const { data, keys } = objectOf(page.result ?? page);
    const list = data ?? keys;
    return Array.isArray(list) ? objectsOf(list) : [page];
  });
}

function secretOf({ plaintext, hash }: Entity): ForeignKey['secret'] | undefined {
  const text = textOf(plaintext);
  if (text !== undefined) return { text };
  const sha256 = textOf(hash);
  return sha256 === undefined ? undefined : { sha256 };
}

/** The limits that hold for every request, and credits that are refilled. */
function limitsOf(row: Entity, leave: Leave): readonly ForeignLimit[] {
  const own = objectsOf(row.ratelimits);
  // As in Unkey, a limit of the key comes before one of the same name of its identity.
  const ofIdentity = objectsOf(objectOf(row.identity).ratelimits).filter(
    ({ name }) => !own.some((limit) => limit.name === name),
  );
  const named = [...own, ...ofIdentity];
  // The first version of the interface has one limit without a name.
  const limits =
    Object.keys(objectOf(row.ratelimit)).length > 0 ? [...named, objectOf(row.ratelimit)] : named;
  const applied = limits.filter(({ autoApply }) => autoApply !== false);
  for (const { name } of limits.filter(({ autoApply }) => autoApply === false))
    leave('ratelimit', `${String(name)} holds only where a request names it: use a match or costs`);
  return [
    ...applied.map(({ name, limit, duration, refillInterval }) => ({
      name: String(name ?? 'rate'),
      limit: Number(limit),
      period: `${Number(duration ?? refillInterval) / 1000}s`,
    })),
    ...creditsOf(creditsIn(row), leave),
  ];
}

function creditsIn(row: Entity): Entity {
  return objectOf(row.credits ?? { remaining: row.remaining, refill: row.refill });
}

/** Whether a key has no credits left and gets none: Unkey rejects it from then on. */
function isUsedUp(credits: Entity): boolean {
  return typeof credits.remaining === 'number' && credits.remaining <= 0 && !isRefilled(credits);
}

function isRefilled({ refill }: Entity): boolean {
  const { interval } = objectOf(refill);
  return interval === 'daily' || interval === 'monthly';
}

function creditsOf(credits: Entity, leave: Leave): readonly ForeignLimit[] {
  const { remaining, refill } = credits;
  const { interval, amount, refillDay } = objectOf(refill);
  if (!isRefilled(credits)) {
    if (isUsedUp(credits)) leave('credits', 'none are left and they are not refilled: the key is disabled');
    else if (typeof remaining === 'number')
      leave('credits', `${remaining} are left and are not refilled: a limit needs a period`);
    return [];
  }
  if (typeof refillDay === 'number') leave('refillDay', 'a window of a month begins with the first request');
  return [{ name: 'credits', limit: Number(amount), period: interval === 'daily' ? 'day' : 'month' }];
}
