import { CommandFault } from '../../command-fault.ts';
import {
  type Entity,
  type ForeignKey,
  type ForeignKeys,
  type ForeignLimit,
  type LeftOut,
  objectOf,
  objectsOf,
  textOf,
  textsOf,
} from './foreign-keys.ts';

const PERIODS = ['second', 'minute', 'hour', 'day', 'month', 'year'] as const;
const LIMITERS: readonly string[] = ['rate-limiting', 'rate-limiting-advanced'];
const LIMITS_BY_CONSUMER: readonly unknown[] = [undefined, null, 'consumer', 'credential'];
/** Credentials that are no keys. */
const OTHER_CREDENTIALS = [
  'basicauth_credentials',
  'hmacauth_credentials',
  'jwt_secrets',
  'mtls_auth_credentials',
  'oauth2_credentials',
];
/** Entities that an import reads, or that say nothing about keys and traffic. */
const READ = [
  'consumers',
  'consumer_groups',
  'consumer_group_consumers',
  'consumer_group_plugins',
  'keyauth_credentials',
  'plugins',
];

/** The keys of a declarative configuration of Kong, as `deck gateway dump` or `kong config db_export` writes it. */
export function readKong(file: unknown): ForeignKeys {
  if (!READ.some((name) => Array.isArray(objectOf(file)[name])))
    throw new CommandFault('usage', 'The file has no consumers, keys or plugins of Kong.');
  const kong = new KongFile(objectOf(file));
  const keys = kong.consumers.flatMap((consumer) => kong.keysOf(consumer));
  return { keys, leftOut: [...kong.leftOut, ...restOf(objectOf(file))] };
}

/** What no key of this gateway can hold: services, routes, plugins for all consumers, and so on. */
function restOf(file: Entity): readonly LeftOut[] {
  const entities = Object.entries(file)
    .filter(([name, list]) => !READ.includes(name) && !name.startsWith('_') && Array.isArray(list))
    .map(([name, list]) => ({
      what: name,
      name: `${(list as readonly unknown[]).length}`,
      reason: 'not a key or a limit of a consumer',
    }));
  const plugins = objectsOf(file.plugins)
    .filter(({ consumer, consumer_group: group }) => consumer == null && group == null)
    .map(({ name }) => ({ what: 'plugin', name: String(name), reason: 'not for a single consumer' }));
  return [...entities, ...plugins];
}

/** A plugin with its limits, at least one. */
interface Limiter {
  readonly plugin: string;
  readonly limits: readonly ForeignLimit[];
}

class KongFile {
  readonly consumers: readonly Entity[];
  readonly leftOut: LeftOut[] = [];
  readonly #credentials: readonly Entity[];
  readonly #plugins: readonly Entity[];
  readonly #groups: readonly Entity[];
  readonly #members: readonly Entity[];

  constructor(file: Entity) {
    this.consumers = objectsOf(file.consumers);
    this.#groups = objectsOf(file.consumer_groups);
    this.#credentials = objectsOf(file.keyauth_credentials);
    this.#plugins = [...objectsOf(file.plugins), ...objectsOf(file.consumer_group_plugins)];
    this.#members = objectsOf(file.consumer_group_consumers);
    for (const credential of this.#credentials)
      if (!this.consumers.some((consumer) => isOf(credential.consumer, consumer)))
        this.#leave('key', textOf(credential.id) ?? '', 'its consumer is not in the file');
  }

  keysOf(consumer: Entity): readonly ForeignKey[] {
    const name = textOf(consumer.username) ?? textOf(consumer.custom_id) ?? 'consumer of Kong';
    for (const kind of OTHER_CREDENTIALS)
      if (objectsOf(consumer[kind]).length > 0) this.#leave(kind, name, 'only keys are imported');
    const limits = this.#limitsOf(consumer, name);
    const credentials = [
      ...objectsOf(consumer.keyauth_credentials),
      ...this.#credentials.filter((credential) => isOf(credential.consumer, consumer)),
    ];
    if (credentials.length === 0) this.#leave('consumer', name, 'has no key');
    return credentials.flatMap((credential) => {
      const secret = textOf(credential.key);
      if (secret === undefined || /^\{vault:|^\$\{/.test(secret)) {
        this.#leave('key', name, 'the file has a reference in place of the key');
        return [];
      }
      if (typeof credential.ttl === 'number' && credential.ttl > 0)
        this.#leave('ttl', name, 'it counts from the creation in Kong: set expiresAt afterwards');
      const externalId = textOf(consumer.custom_id);
      return {
        name,
        secret: { text: secret },
        limits,
        tags: textsOf(consumer.tags, credential.tags),
        ...(externalId !== undefined && { externalId }),
      };
    });
  }

  /** Of each plugin the limits of the consumer itself, or else those of the first of its groups that has any, as in Kong. */
  #limitsOf(consumer: Entity, name: string): readonly ForeignLimit[] {
    const own = this.#limitersIn(this.#pluginsOf(consumer, 'consumer'), name);
    const groups = this.#groupsOf(consumer).map((group) =>
      this.#limitersIn(this.#pluginsOf(group, 'consumer_group'), `group ${String(group.name)}`),
    );
    return LIMITERS.flatMap((plugin) => {
      const ofPlugin = (limiter: Limiter) => limiter.plugin === plugin;
      const ownLimiter = own.find(ofPlugin);
      if (ownLimiter !== undefined) return ownLimiter.limits;
      const [first, ...others] = groups.flatMap((limiters) => limiters.find(ofPlugin) ?? []);
      if (others.length > 0)
        this.#leave('consumer_group', name, 'only the limits of its first group are used');
      return first?.limits ?? [];
    });
  }

  #groupsOf(consumer: Entity): readonly Entity[] {
    const named = objectsOf(consumer.groups);
    return this.#groups.filter(
      (group) =>
        named.some(({ name, id }) => [group.name, group.id].includes(name ?? id)) ||
        this.#members.some((one) => isOf(one.consumer, consumer) && isOf(one.consumer_group, group)) ||
        objectsOf(group.consumers).some((member) => isOf(member.username ?? member.id, consumer)),
    );
  }

  #pluginsOf(entity: Entity, kind: 'consumer' | 'consumer_group'): readonly Entity[] {
    return [...objectsOf(entity.plugins), ...this.#plugins.filter((plugin) => isOf(plugin[kind], entity))];
  }

  #limitersIn(plugins: readonly Entity[], owner: string): readonly Limiter[] {
    const limiters: Limiter[] = [];
    for (const { name, enabled, config, route, service } of plugins) {
      if (enabled === false) continue;
      const plugin = String(name);
      const { limit_by: by, identifier = by } = objectOf(config);
      if (!LIMITERS.includes(plugin)) this.#leave('plugin', plugin, `of ${owner}: only limits are imported`);
      else if (route != null || service != null)
        this.#leave('plugin', plugin, `of ${owner}: it is for one route or service`);
      else if (!LIMITS_BY_CONSUMER.includes(identifier))
        this.#leave('plugin', plugin, `of ${owner}: it limits by ${String(identifier)}`);
      else limiters.push({ plugin, limits: limitsOf(objectOf(config)) });
    }
    return limiters.filter(({ limits }) => limits.length > 0);
  }

  #leave(what: string, name: string, reason: string): void {
    const isKnown = this.leftOut.some(
      (one) => what !== 'key' && one.what === what && one.name === name && one.reason === reason,
    );
    if (!isKnown) this.leftOut.push({ what, name, reason });
  }
}

/** `rate-limiting` has a number for each period, `rate-limiting-advanced` lists of limits and of lengths in seconds. */
function limitsOf(config: Entity): readonly ForeignLimit[] {
  const { limit, window_size: sizes } = config;
  if (Array.isArray(limit) && Array.isArray(sizes))
    return limit.map((count, index) => ({ limit: Number(count), period: `${String(sizes[index])}s` }));
  return PERIODS.flatMap((period) =>
    typeof config[period] === 'number' ? { limit: config[period], period } : [],
  );
}

/** Whether a reference, by name or by id, is to an entity. Kong knows none by `custom_id`, which may be the name of another consumer. */
function isOf(reference: unknown, entity: Entity): boolean {
  const { id, username, name } = objectOf(reference);
  const words = [reference, id, username, name].filter((word) => typeof word === 'string');
  return words.some((word) => [entity.id, entity.username, entity.name].includes(word));
}
