import { Cluster, type Redis } from 'ioredis';
import type { Clock } from '../../../platform/clock.ts';
import type { LuaScript } from '../lua-script.ts';
import type { RedisConnection } from '../redis-connection.ts';
import { CallBatcher, callDecision, type DecisionCall, type DecisionCallback } from './decision-messages.ts';
import { hashSlotOf } from './hash-slot.ts';

/**
 * A lower bound of a Redis server's clock, derived from its replies and this process's monotonic clock: the two machines' clocks need
 * not agree. A slow reply gives a weaker bound; a reply that contradicts the bound (the server's clock was set back) replaces it.
 */
export class ServerClock {
  #leastOffsetMs: number | undefined;

  /** False until a reply on this connection brought the server's time. */
  get isKnown(): boolean {
    return this.#leastOffsetMs !== undefined;
  }

  /** To be called when the connection was lost: the next one may lead to another server. */
  forget(): void {
    this.#leastOffsetMs = undefined;
  }

  /** The server's time, in whole milliseconds, was `serverMs` at some instant between `sentAt` and `receivedAt` (monotonic clock). */
  learn(serverMs: number, sentAt: number, receivedAt: number): void {
    const least = serverMs - receivedAt;
    const most = serverMs + 1 - sentAt;
    const known = this.#leastOffsetMs;
    if (known === undefined || least > known || most < known) this.#leastOffsetMs = least;
  }

  /** The least that the server's clock shows at an instant of our monotonic clock. Milliseconds since 1970; undefined = not known. */
  atLeast(instant: number): number | undefined {
    return this.#leastOffsetMs === undefined ? undefined : this.#leastOffsetMs + instant;
  }
}

/** How long to wait before the server's time is requested again after a failure. */
const ASK_AGAIN_MS = 200;

/** One server that makes decisions, and what is known of its clock. */
class DecisionServer {
  readonly redis: Redis;
  readonly time = new ServerClock();
  readonly #clock: Clock;
  #isHeld = false;
  #wasReady = false;

  constructor(redis: Redis, clock: Clock) {
    this.redis = redis;
    this.#clock = clock;
    redis.on('ready', () => void this.#askTime());
    redis.on('close', () => this.time.forget());
    if (redis.status === 'ready') void this.#askTime();
  }

  /** True while there is a connection on which the server's time is known. */
  get isReady(): boolean {
    return this.redis.status === 'ready' && this.time.isKnown;
  }

  /** True until it was ready once: its first connection is being made, or none was needed yet. */
  get isNew(): boolean {
    return !this.#wasReady;
  }

  /** Buffers writes to the server until the end of the event-loop turn: one system call, one packet. */
  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    const { stream } = this.redis;
    stream.cork();
    setImmediate(() => {
      this.#isHeld = false;
      stream.uncork();
    });
  }

  async #askTime(): Promise<void> {
    const sentAt = this.#clock.monotonicMs();
    try {
      const [seconds, microseconds] = await this.redis.time();
      const serverMs = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
      this.time.learn(serverMs, sentAt, this.#clock.monotonicMs());
      this.#wasReady = true;
    } catch {
      // If the connection broke, 'ready' reads the time again; if it is still up, this does.
      setTimeout(() => {
        if (this.redis.status === 'ready' && !this.time.isKnown) void this.#askTime();
      }, ASK_AGAIN_MS).unref();
    }
  }
}

/** How a call reaches the server that decides it. */
export interface DecisionRoute {
  /** Calls the script. On one server the calls of an event-loop turn are combined; on a cluster their keys lie in different slots. */
  send(call: DecisionCall, onReply: DecisionCallback): void;
  /** The least that the server's clock will show at an instant of this process's monotonic clock, in milliseconds since 1970. */
  serverTimeAt(instant: number): number;
  /** Takes the server's time from each reply. */
  learn(serverMs: number, sentAt: number, receivedAt: number): void;
}

/** Which server makes the decisions for a key. */
export interface DecisionRoutes {
  /** Undefined if the key's server can't be reached now: then nothing may be sent. */
  routeOf(keyId: string): DecisionRoute | undefined;
  /** The route for a call that its server redirected; undefined without a cluster. */
  readonly redirected: DecisionRoute | undefined;
  /** To be called when a server did not respond: it may have been replaced. */
  suspect(): void;
  /** True when every server that makes decisions is ready. */
  readonly areReady: boolean;
  /** Rejects with the client's error when one of the servers does not respond. */
  ping(): Promise<void>;
}

/** Routes over a connection for decisions, for calls of the script. */
export function decisionRoutes(connection: RedisConnection, script: LuaScript, clock: Clock): DecisionRoutes {
  return connection instanceof Cluster
    ? new ClusterRoutes(connection, script, clock)
    : new SingleRoute(connection, script, clock);
}

class SingleRoute implements DecisionRoutes {
  readonly redirected = undefined;
  readonly #server: DecisionServer;
  readonly #route: DecisionRoute;

  constructor(redis: Redis, script: LuaScript, clock: Clock) {
    const batcher = new CallBatcher(script, redis);
    this.#server = new DecisionServer(redis, clock);
    this.#route = routeTo(this.#server, (call, onReply) => batcher.add(call, onReply));
  }

  get areReady(): boolean {
    return this.#server.isReady;
  }

  routeOf(): DecisionRoute | undefined {
    return this.#server.isReady ? this.#route : undefined;
  }

  suspect(): void {
    // Nothing to do: reconnecting finds the server, or the master that the sentinels name.
  }

  async ping(): Promise<void> {
    await this.#server.redis.ping();
  }
}

/** Shortest time between two reads of the cluster's slots, in milliseconds. */
const REFRESH_PAUSE_MS = 500;

/**
 * The cluster client can route calls, but it queues calls for a server that it is still connecting to, pauses before it follows a
 * redirection, and does not say which server replied. So calls go to the connections of its pool directly, and only those that a
 * server redirects go through the client.
 */
class ClusterRoutes implements DecisionRoutes {
  readonly redirected: DecisionRoute;
  readonly #cluster: Cluster;
  readonly #script: LuaScript;
  readonly #clock: Clock;
  readonly #servers = new Map<string, { readonly server: DecisionServer; readonly route: DecisionRoute }>();
  #refreshedAt = Number.NEGATIVE_INFINITY;

  constructor(cluster: Cluster, script: LuaScript, clock: Clock) {
    this.#cluster = cluster;
    this.#script = script;
    this.#clock = clock;
    cluster.on('+node', (redis: Redis) => this.#add(redis));
    cluster.on('-node', (redis: Redis) => this.#remove(redis));
    for (const redis of cluster.nodes()) this.#add(redis);
    this.redirected = {
      send: (call, onReply) => callDecision(script, cluster, call, onReply),
      // It is not known which server will reply: the clock that is furthest behind may end the call early, but never late.
      serverTimeAt: (instant) =>
        Math.min(...[...this.#servers.values()].flatMap(({ server }) => server.time.atLeast(instant) ?? [])),
      learn: () => {},
    };
  }

  get areReady(): boolean {
    const masters = this.#cluster.nodes('master');
    return (
      this.#cluster.status === 'ready' &&
      masters.length > 0 &&
      masters.every((redis) => this.#servers.get(addressOf(redis))?.server.isReady === true)
    );
  }

  routeOf(keyId: string): DecisionRoute | undefined {
    if (this.#cluster.status !== 'ready') return undefined;
    const address = this.#cluster.slots[hashSlotOf(keyId)]?.[0];
    const found = address === undefined ? undefined : this.#servers.get(address);
    if (found?.server.isReady) return found.route;
    this.suspect();
    // The client is still connecting to a server that just joined: its queue holds the call until then.
    return found?.server.isNew && Number.isFinite(this.redirected.serverTimeAt(0))
      ? this.redirected
      : undefined;
  }

  suspect(): void {
    const now = this.#clock.monotonicMs();
    if (this.#cluster.status !== 'ready' || now - this.#refreshedAt < REFRESH_PAUSE_MS) return;
    this.#refreshedAt = now;
    this.#cluster.refreshSlotsCache(() => {});
  }

  async ping(): Promise<void> {
    const masters = this.#cluster.nodes('master');
    if (this.#cluster.status !== 'ready' || masters.length === 0)
      throw new Error('the cluster is not connected');
    await Promise.all(masters.map((redis) => redis.ping()));
  }

  #add(redis: Redis): void {
    const server = new DecisionServer(redis, this.#clock);
    const route = routeTo(server, (call, onReply) => {
      server.hold();
      callDecision(this.#script, redis, call, onReply);
    });
    this.#servers.set(addressOf(redis), { server, route });
    redis.on('close', () => this.suspect());
  }

  #remove(redis: Redis): void {
    const address = addressOf(redis);
    if (this.#servers.get(address)?.server.redis === redis) this.#servers.delete(address);
  }
}

function routeTo({ time }: DecisionServer, send: DecisionRoute['send']): DecisionRoute {
  return {
    send,
    serverTimeAt: (instant) => time.atLeast(instant) ?? 0,
    learn: (serverMs, sentAt, receivedAt) => time.learn(serverMs, sentAt, receivedAt),
  };
}

/** The address of a server as the client's slot table has it. */
export function addressOf({ options }: Redis): string {
  return `${options.host}:${options.port}`;
}
