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
  textsOf,
} from './foreign-keys.ts';

export interface TykOptions {
  /** Whether Tyk stores the keys themselves, or their digests (`hash_keys`, `hash_key_function`). */
  readonly hashed: boolean;
  /** The content of the list of policies. */
  readonly policies: unknown;
  readonly nowMs: number;
}

/** The keys of an export of Tyk's gateway: a list of `{key, session}`, or of `{key_id, data}` as the dashboard has it. */
export function readTyk(file: unknown, options: TykOptions): ForeignKeys {
  const policies = new Map(policiesIn(options.policies).map(({ id, entity }) => [id, entity]));
  const keys: ForeignKey[] = [];
  const leftOut: LeftOut[] = [];
  for (const row of objectsOf(Array.isArray(file) ? file : [file])) {
    const key = textOf(row.key ?? row.key_id);
    const session = objectOf(row.session ?? row.data);
    if (key === undefined || Object.keys(session).length === 0)
      throw new CommandFault(
        'usage',
        'The file is not an export of keys: an entry needs a key and its session.',
      );
    const name = textOf(session.alias) ?? 'key from Tyk';
    const leave: Leave = (what, reason) => leftOut.push({ what, name, reason });
    const obstacle = obstacleTo(key, session, options);
    if (obstacle === undefined) keys.push(keyOf({ name, key, session, policies, leave }, options));
    else leave(...obstacle);
  }
  return { keys, leftOut };
}

/** Why a key is not imported, with its kind; undefined if it is. */
function obstacleTo(
  key: string,
  session: Entity,
  { hashed, nowMs }: TykOptions,
): readonly [what: string, reason: string] | undefined {
  const expires = Number(session.expires ?? 0);
  if (expires > 0 && expires * 1000 <= nowMs) return ['expired key', 'has expired'];
  if (hashed && !/^[0-9a-f]{64}$/i.test(key))
    return ['key', 'is stored by another digest than SHA-256, from which the key can not be found'];
  return undefined;
}

interface TykKey {
  readonly name: string;
  readonly key: string;
  readonly session: Entity;
  readonly policies: ReadonlyMap<string, Entity>;
  readonly leave: Leave;
}

function keyOf({ name, key, session, policies, leave }: TykKey, { hashed }: TykOptions): ForeignKey {
  const expires = Number(session.expires ?? 0);
  const applied = appliedTo(session, policies, leave);
  for (const [part, reason] of new Map([...applied, session].flatMap(restOf))) leave(part, reason);
  const isUsedUp = hasNoQuotaLeft(session);
  if (isUsedUp) leave('quota', 'is used up: the key is disabled');
  return {
    name,
    secret: hashed ? { sha256: key } : { text: key },
    limits: limitsOf(session, applied, leave),
    tags: [...new Set(textsOf(session.tags, ...applied.map(({ tags }) => tags)))],
    enabled: !isUsedUp && [session, ...applied].every(({ is_inactive: isInactive }) => isInactive !== true),
    ...(expires > 0 && { expiresAt: instant(expires * 1000) }),
    metadata: Object.assign({}, ...[session, ...applied].map((entity) => objectOf(entity.meta_data))),
  };
}

/** Tyk's gateway lists policies, its dashboard has pages of them in `Data`, and its file has them by their ids. */
function policiesIn(value: unknown): readonly { readonly id: string; readonly entity: Entity }[] {
  const list = objectOf(value).Data ?? value;
  const entries = Array.isArray(list)
    ? objectsOf(list).flatMap((entity) => [[entity.id, entity] as const, [entity._id, entity] as const])
    : Object.entries(objectOf(list));
  return entries.flatMap(([key, entity]) => {
    const id = textOf(key);
    return id === undefined ? [] : { id, entity: objectOf(entity) };
  });
}

function appliedTo(session: Entity, policies: ReadonlyMap<string, Entity>, leave: Leave): readonly Entity[] {
  return policyIdsIn(session).flatMap((id) => {
    const policy = policies.get(id);
    if (policy === undefined) leave('policy', `the policy ${id} is not in the file of policies`);
    return policy === undefined ? [] : [policy];
  });
}

function policyIdsIn(session: Entity): readonly string[] {
  const ids = textsOf(session.apply_policies);
  return ids.length > 0 ? ids : textsOf([session.apply_policy_id]);
}

/**
 * Whether a key has used up a quota that is never renewed: Tyk rejects it for good. Of a quota that a policy sets, Tyk says that 0 is left also
 * for a key that was never used.
 */
function hasNoQuotaLeft(session: Entity): boolean {
  const { quota_max: max, quota_remaining: remaining, quota_renewal_rate: seconds } = session;
  const isRenewed = Number(seconds ?? 0) > 0;
  return policyIdsIn(session).length === 0 && Number(max ?? 0) > 0 && remaining === 0 && !isRenewed;
}

/** The limits of a session's policies, or else its own: each of the two is set by other policies, as in Tyk. */
function limitsOf(session: Entity, applied: readonly Entity[], leave: Leave): readonly ForeignLimit[] {
  return PARTS.flatMap((part) => {
    const setting = applied.filter((policy) => sets(policy, part));
    return limitOf(setting.length > 0 ? setting.flatMap(limitingIn) : [session], part, leave);
  });
}

const PARTS = [
  { name: 'rate', partition: 'rate_limit', count: 'rate', seconds: 'per' },
  { name: 'quota', partition: 'quota', count: 'quota_max', seconds: 'quota_renewal_rate' },
] as const;
type Part = (typeof PARTS)[number];

/** A policy without partitions sets all parts of a key, and so does one with limits for each API. */
function sets(policy: Entity, { partition }: Part): boolean {
  const partitions = objectOf(policy.partitions);
  return (
    partitions[partition] === true || partitions.per_api === true || !Object.values(partitions).includes(true)
  );
}

/** What has a policy's limits: the policy, or with `per_api` each of its APIs that has limits. */
function limitingIn(policy: Entity): readonly Entity[] {
  if (objectOf(policy.partitions).per_api !== true) return [policy];
  return apisOf(policy).map(({ limit }) => (isEmpty(limit) ? policy : objectOf(limit)));
}

/** The highest limit of some entities; none where one of them is unlimited, which Tyk writes as -1. */
function limitOf(
  entities: readonly Entity[],
  { name, count, seconds }: Part,
  leave: Leave,
): readonly ForeignLimit[] {
  const limits = entities
    .map((entity) => ({ limit: Number(entity[count] ?? 0), length: Number(entity[seconds] ?? 0) }))
    .filter(({ limit }) => limit !== 0);
  if (limits.some(({ limit }) => limit < 0)) return [];
  const [highest] = limits
    .filter(({ length }) => length > 0)
    .toSorted((one, other) => other.limit / other.length - one.limit / one.length);
  if (highest !== undefined) return [{ name, limit: highest.limit, period: `${highest.length}s` }];
  if (limits.length > 0) leave(name, 'is never renewed: a limit needs a period');
  return [];
}

/** The parts of a session or a policy that have no counterpart. */
function restOf(entity: Entity): readonly (readonly [what: string, reason: string])[] {
  const apis = apisOf(entity);
  const hasApiLimits = apis.some(
    ({ limit, endpoints }) => !isEmpty(limit) || objectsOf(endpoints).length > 0,
  );
  const isRestricted = apis.some(({ allowed_urls: urls }) => objectsOf(urls).length > 0);
  const isSigned = entity.hmac_enabled === true || entity.enable_http_signature_validation === true;
  const isThrottled = Number(entity.throttle_interval ?? 0) > 0;
  const parts: readonly (readonly [isThere: boolean, what: string, reason: string])[] = [
    [apis.length > 1, 'access_rights', `of ${apis.length} APIs: one backend is behind the gateway`],
    [hasApiLimits, 'limit', 'limits for single APIs: use additional limits with a match'],
    [isRestricted, 'allowed_urls', 'keys are not limited to paths'],
    [isSigned, 'hmac', 'requests are not signed here'],
    [isThrottled, 'throttle', 'requests beyond a limit do not wait'],
  ];
  return parts.flatMap(([isThere, ...part]) => (isThere ? [part] : []));
}

function apisOf({ access_rights: rights }: Entity): readonly Entity[] {
  return Object.values(objectOf(rights)).map(objectOf);
}

/** Tyk writes the limits of an API that has none as null, as an empty object or as zeros. */
function isEmpty(limit: unknown): boolean {
  return Object.values(objectOf(limit)).every((value) => value === 0 || value === null);
}
