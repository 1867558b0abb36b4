import { Redis } from 'ioredis';
import { customerWindowName, OTHER_CUSTOMERS, windowNameOf } from '../../../limiter/customer-windows.ts';
import type { RestorableCounters, UncountedUnits } from '../../../limiter/guards/count-restorer.ts';
import { NotCounted } from '../../../limiter/not-counted.ts';
import { windowEndMs } from '../../../limiter/period.ts';
import type { Limit } from '../../../limiter/request-limits.ts';
import {
  type CostDifference,
  type CounterSubject,
  GRANT_REMEMBERED_MS,
  type GrantedUnits,
  type PassedThreshold,
  type ResetWindows,
  type SettledWindows,
  type WindowCounter,
  type WindowCounters,
  type WindowCounts,
} from '../../../limiter/window-counters.ts';
import type { Random } from '../../../platform/random.ts';
import { outliveRejections, partsOf } from '../changes/redis-record-versions.ts';
import { hashSlotOf } from '../decisions/hash-slot.ts';
import { addressOf } from '../decisions/server-routing.ts';
import { LuaScript } from '../lua-script.ts';
import type { RedisConnection } from '../redis-connection.ts';
import { hadNoEffect, isElsewhere, redisUnavailable, settled, unexpectedReply } from '../redis-failure.ts';
import {
  CHANGES_CHANNEL,
  closedKeyName,
  customersKeyName,
  grantedKeyName,
  operationKeyName,
  passedKeyName,
  versionKeyName,
  windowKeyName,
} from '../redis-key-names.ts';

/** Windows of customers that one call closes: the script blocks every decision while it runs. */
const CLOSED_AT_ONCE = 500;
/** Consumer keys whose windows one call reads, for the same reason. */
const READ_AT_ONCE = 50;
const WINDOW_WITHOUT_EXPIRY = -2;
const NOT_REACHED = 'the Redis server of this key was not reached, or rejected the call';
/** Milliseconds, as `RestorableCounters` says. */
const RESTORE_REMEMBERED_MS = 600_000;

/** How units are added. */
interface Addition {
  readonly nowMs: number;
  /** When a window that it opens ends at the latest. */
  readonly latestEndMs?: number;
  /** Units granted by it beyond the limit. */
  readonly granted: number;
  /** While the operation is remembered, repeating it adds nothing. */
  readonly operationId: string;
  /** Milliseconds. */
  readonly rememberedMs: number;
}

/** Reads and changes the windows in Redis outside of decisions. Customers beyond the bound of open windows share one window. */
export class RedisWindowCounters implements WindowCounters, RestorableCounters {
  readonly #redis: RedisConnection;
  readonly #random: Random;
  readonly #addUnits = new LuaScript(new URL('./addUnits-7.lua', import.meta.url));
  readonly #clearWindows = new LuaScript(new URL('./clearWindows-n.lua', import.meta.url));
  readonly #settleCost = new LuaScript(new URL('./settleCost-n.lua', import.meta.url));
  readonly #passThreshold = new LuaScript(new URL('./passThreshold-2.lua', import.meta.url));
  readonly #readWindows = new LuaScript(new URL('./readWindows-n.lua', import.meta.url));

  /** `redis` need not be the connection for decisions. */
  constructor(redis: RedisConnection, random: Random) {
    this.#redis = redis;
    this.#random = random;
  }

  async read(subject: CounterSubject): Promise<WindowCounts> {
    const [counts] = await this.#readTogether([subject]);
    if (counts === undefined) throw redisUnavailable(unexpectedReply());
    return counts;
  }

  async readAll(subjects: readonly CounterSubject[]): Promise<readonly WindowCounts[]> {
    // On a cluster, each consumer key has its own hash slot.
    const atOnce = this.#redis instanceof Redis ? READ_AT_ONCE : 1;
    const parts = partsOf(subjects, atOnce);
    return (await Promise.all(parts.map((part) => this.#readTogether(part)))).flat();
  }

  async restore(uncounted: UncountedUnits, operationId: string): Promise<void> {
    const { keyId } = uncounted;
    // Just before theirs, which identifies their window: a cost of one that was reset must not be settled in this one.
    const latestEndMs = uncounted.resetAtMs - 1;
    // Nothing has been added if the time can't be read: no script was sent yet.
    const nowMs = await this.#nowMs(keyId).catch(() => {
      throw new NotCounted(NOT_REACHED);
    });
    if (latestEndMs <= nowMs) return;
    const addition = {
      nowMs,
      latestEndMs,
      granted: 0,
      operationId,
      rememberedMs: RESTORE_REMEMBERED_MS,
    };
    await this.#sendOnce(keyId, (redis) => this.#add(uncounted, addition, redis));
  }

  async grant({ keyId, limits, customerId, units, operationId }: GrantedUnits): Promise<void> {
    const addition = {
      nowMs: await this.#nowMs(keyId),
      granted: units,
      // The client of a cluster sends a call again whose connection was lost.
      operationId: operationId ?? `grant-${this.#random.bytes(16).toString('base64url')}`,
      rememberedMs: GRANT_REMEMBERED_MS,
    };
    const repliesMs = await Promise.all(
      limits.map((limit) => this.#add({ keyId, limit, customerId, units: -units }, addition)),
    );
    await outliveRejections(repliesMs);
  }

  async reset({ keyId, limits, customerId }: ResetWindows): Promise<void> {
    const ofKey = limits.filter(({ per }) => per === 'key').map(({ windowName }) => windowName);
    const perCustomer = limits.filter(({ per }) => per === 'customer');
    const shared =
      customerId === null ? perCustomer.map((limit) => customerWindowName(limit, OTHER_CUSTOMERS)) : [];
    const ofCustomers =
      customerId === null
        ? await this.#openCustomerWindows(keyId, perCustomer)
        : perCustomer.map((limit) => customerWindowName(limit, customerId));
    const repliesMs = [await this.#clear(keyId, [...ofKey, ...shared], [])];
    for (const names of partsOf(ofCustomers, CLOSED_AT_ONCE))
      repliesMs.push(await this.#clear(keyId, names, names));
    await outliveRejections(repliesMs);
  }

  async settle({ keyId, customerId, decidedAtMs, windows, units }: CostDifference): Promise<SettledWindows> {
    const names = windows.map(({ limit, isShared }) => windowNameOf(limit, customerId, isShared));
    const windowKeyNames = names.map((name) => windowKeyName(keyId, name));
    const keyNames = [versionKeyName(keyId), closedKeyName(keyId), ...windowKeyNames];
    const args = [units, decidedAtMs, ...windows.map(({ resetAtMs }) => resetAtMs)].map(String);
    const reply = await this.#sendOnce(keyId, (redis) => this.#settleCost.runWithKeys(redis, keyNames, args));
    if (!Array.isArray(reply) || reply.length !== 1 + windows.length)
      throw redisUnavailable(unexpectedReply());
    const used = reply.slice(1).map((count) => (typeof count === 'number' ? count : undefined));
    return { used, nowMs: Number(reply[0]) };
  }

  async passOnce({
    keyId,
    limit,
    customerId = '',
    threshold,
    quota,
    resetAtMs,
  }: PassedThreshold): Promise<boolean> {
    const windowName = windowNameOf(limit, customerId, false);
    const keyNames = [grantedKeyName(keyId, windowName), passedKeyName(keyId, windowName)];
    const args = [threshold, quota, resetAtMs].map(String);
    return (await this.#passThreshold.run(this.#redis, [...keyNames, ...args])) === 1;
  }

  /**
   * Sends a script that must run at most once. The client of a cluster sends a call again whose connection was lost, so the call goes to the
   * key's server, and through the client only where the slot is at another one. Rejects with `NotCounted` if it did not run, also where each
   * of two servers has some of the call's names while a slot moves.
   */
  async #sendOnce<Reply>(keyId: string, send: (redis: RedisConnection) => Promise<Reply>): Promise<Reply> {
    const server = serverOf(this.#redis, keyId);
    try {
      return await send(server).catch((error: unknown) => {
        if (server === this.#redis || !isElsewhere(error)) throw error;
        return send(this.#redis);
      });
    } catch (error) {
      // Redis rejects such a script before its first write: read-only, out of memory, a slot that is moved in part.
      throw hadNoEffect(error) ? new NotCounted(NOT_REACHED) : error;
    }
  }

  async #readTogether(subjects: readonly CounterSubject[]): Promise<readonly WindowCounts[]> {
    const keyNames = subjects.flatMap(({ keyId, limits, customerId }) => [
      customersKeyName(keyId),
      ...limits.flatMap((limit) => windowKeysOf(keyId, limit, customerId)),
    ]);
    const windows = subjects.map(({ limits }) => limits.length);
    const reply = await this.#readWindows.runWithKeys(this.#redis, keyNames, windows.map(String));
    const all = windows.reduce((sum, count) => sum + count, 0);
    if (!isNumbers(reply) || reply.length !== 1 + 3 * all) throw redisUnavailable(unexpectedReply());
    const nowMs = reply[0] ?? 0;
    let at = 1;
    return subjects.map(({ limits }) => {
      const counters = limits.map((limit, index) =>
        counterOf(limit, reply.slice(at + 3 * index, at + 3 * index + 3), nowMs),
      );
      at += 3 * limits.length;
      return { counters, nowMs };
    });
  }

  async #add(
    { keyId, limit, customerId, units }: Omit<UncountedUnits, 'resetAtMs'>,
    { nowMs, latestEndMs = Number.POSITIVE_INFINITY, granted, operationId, rememberedMs }: Addition,
    redis = this.#redis,
  ): Promise<number> {
    const isChange = granted > 0;
    const windows = windowKeysOf(keyId, limit, customerId);
    const operation = operationKeyName(keyId, operationId);
    const keyNames = [versionKeyName(keyId), ...windows, customersKeyName(keyId), operation];
    const endsAtMs = Math.min(windowEndMs(nowMs, limit.period), latestEndMs);
    const args = [units, granted, endsAtMs].map(String);
    const change = isChange ? [CHANGES_CHANNEL, keyId] : ['', ''];
    return Number(await this.#addUnits.run(redis, [...keyNames, ...args, ...change, String(rememberedMs)]));
  }

  async #clear(keyId: string, names: readonly string[], members: readonly string[]): Promise<number> {
    if (names.length === 0) return 0;
    const removed = names.flatMap((name) => [windowKeyName(keyId, name), grantedKeyName(keyId, name)]);
    const keyNames = [versionKeyName(keyId), customersKeyName(keyId), closedKeyName(keyId), ...removed];
    const args = [CHANGES_CHANNEL, keyId, ...members];
    return Number(await this.#clearWindows.runWithKeys(this.#redis, keyNames, args));
  }

  async #openCustomerWindows(keyId: string, limits: readonly Limit[]): Promise<readonly string[]> {
    if (limits.length === 0) return [];
    const names = await settled(this.#redis.zrange(customersKeyName(keyId), '0', '-1'));
    return names.filter((name) => limits.some(({ windowName }) => name.startsWith(`${windowName}:`)));
  }

  /** The time by the clock of the key's server, which all of its windows use. */
  async #nowMs(keyId: string): Promise<number> {
    try {
      const [seconds, microseconds] = await serverOf(this.#redis, keyId).time();
      return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }
}

/**
 * The names of a window and of its granted units, then those of the window that customers beyond the bound share. For a limit of the key
 * both pairs are the same.
 */
function windowKeysOf(keyId: string, limit: Limit, customerId: string): readonly string[] {
  const isOfKey = limit.per === 'key';
  const own = isOfKey ? limit.windowName : customerWindowName(limit, customerId);
  const shared = isOfKey ? limit.windowName : customerWindowName(limit, OTHER_CUSTOMERS);
  return [
    windowKeyName(keyId, own),
    grantedKeyName(keyId, own),
    windowKeyName(keyId, shared),
    grantedKeyName(keyId, shared),
  ];
}

function counterOf(
  limit: Limit,
  [count = 0, granted = 0, endsAtMs = -1]: number[],
  nowMs: number,
): WindowCounter {
  const resetAtMs =
    endsAtMs === WINDOW_WITHOUT_EXPIRY ? windowEndMs(nowMs, limit.period) : endsAtMs < 0 ? null : endsAtMs;
  return { limit, used: count + granted, granted, resetAtMs };
}

function isNumbers(reply: unknown): reply is number[] {
  return Array.isArray(reply) && reply.every((item) => typeof item === 'number');
}

/** The server of a key; throws `NotCounted` if it is one of a cluster that can't be reached now. */
function serverOf(redis: RedisConnection, keyId: string): RedisConnection {
  if (redis instanceof Redis) return redis;
  const address = redis.slots[hashSlotOf(keyId)]?.[0];
  const server = redis.nodes('master').find((master) => addressOf(master) === address);
  if (server?.status !== 'ready') throw new NotCounted(NOT_REACHED);
  return server;
}
