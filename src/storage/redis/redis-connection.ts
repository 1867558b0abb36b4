import { Cluster, type CommonRedisOptions, Redis, type RedisOptions } from 'ioredis';
import type { Logger } from '../../platform/logger.ts';
import type { Random } from '../../platform/random.ts';
import { safeRedisError } from './redis-failure.ts';
import { TlsSentinelConnector, tlsTo } from './server-names.ts';

/** A connection to one server (or the master that sentinels name), or to all masters of a cluster. */
export type RedisConnection = Redis | Cluster;

/** How Redis is run: one server, Redis Cluster, or a master and replicas watched by sentinels. */
export type RedisMode = 'single' | 'cluster' | 'sentinel';

/** Where Redis is. Holds passwords, so it is never logged. */
export interface RedisAddress {
  /** At least one. In cluster and sentinel mode the servers to contact first. */
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  readonly isTls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** Number of the database; a cluster has only 0. */
  readonly database: number;
  /** Name under which sentinels know the master; `mymaster` where it is undefined. */
  readonly masterName: string | undefined;
  /** Password of the sentinels themselves. */
  readonly sentinelPassword: string | undefined;
}

/** Where Redis is and how long it may take. */
export interface RedisSettings {
  readonly address: RedisAddress;
  readonly mode: RedisMode;
  /** The timeout of a decision in milliseconds. Other commands have a longer one, see `RedisPurpose`. */
  readonly timeoutMs: number;
}

/** What connecting needs of the platform. */
export interface RedisPlatform {
  readonly log: Logger;
  readonly random: Random;
}

/**
 * What a connection is for.
 *
 * - `decisions`: the hot path. `DecisionCalls` bounds each call by `timeoutMs`.
 * - `usage`: all other commands: usage, changes, heartbeats. Its pipelines are larger, so its timeout is ten times as long, at least 2 s.
 * - `subscription`: receives messages, and waits for Redis without a limit. In a cluster it connects to one server, and to the next one
 *   whenever that connection is lost.
 */
export type RedisPurpose = 'decisions' | 'usage' | 'subscription';

/** Without `replyMapping`: replies keep their RESP2 shapes, which is the client's default. */
type ClientOptions = Omit<CommonRedisOptions, 'replyMapping'>;

/** The master's name in the docs of Sentinel. */
const MASTER_NAME = 'mymaster';
const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 2000;
/** How long a socket may take to close. The client waits this long even if the socket is closed already. */
const DISCONNECT_TIMEOUT_MS = 500;
const TRY_AGAIN_MS = 10;
const SLOTS_REFRESH_MS = 5000;

/**
 * Connects, and reconnects until the connection is closed. Never throws for a server that is unreachable: commands fail at once while
 * there is no connection. A command whose connection was lost is not sent again, because it may have been carried out; only the client of a
 * cluster does that, unless the connection is for decisions.
 */
export function connectRedis(
  purpose: RedisPurpose,
  settings: RedisSettings,
  platform: RedisPlatform,
): RedisConnection {
  const options = { ...commonOptions(purpose, settings, platform.random), ...credentials(settings.address) };
  const redis = open(purpose, settings, options);
  if (redis instanceof Redis) requireDatabase(redis);
  // A server that vanished leaves a half-open socket.
  if (purpose === 'decisions')
    closeUnresponsive(redis, connectionTimeouts(settings.timeoutMs).unresponsiveMs);
  logStateChanges(redis, platform.log.child({ connection: purpose }));
  return redis;
}

/** How long a server that hangs may delay each step of closing the connections to it. Milliseconds. */
export const CLOSE_STEP_MS = 1500;

/** Closes a connection. If it is up, commands that were sent get their replies first, if those come in time. Never rejects. */
export async function closeRedis(redis: RedisConnection): Promise<void> {
  // Ends the wait for the reply to QUIT: subscriptions and decisions have no timeout of the client.
  const timer = setTimeout(() => redis.disconnect(), CLOSE_STEP_MS);
  try {
    if (redis.status === 'ready') {
      await redis.quit();
      return;
    }
  } catch {
    // The server did not reply to QUIT: close the connection anyway.
  } finally {
    clearTimeout(timer);
  }
  redis.disconnect();
}

function open(purpose: RedisPurpose, settings: RedisSettings, options: ClientOptions): RedisConnection {
  const { address } = settings;
  switch (settings.mode) {
    case 'single':
      return new Redis({
        ...options,
        ...serverOptions(address, 0),
        db: address.database,
        disconnectTimeout: DISCONNECT_TIMEOUT_MS,
      });
    case 'sentinel':
      return new Redis({
        ...options,
        sentinels: [...address.nodes],
        name: address.masterName ?? MASTER_NAME,
        sentinelCommandTimeout: connectionTimeouts(settings.timeoutMs).commandMs,
        db: address.database,
        disconnectTimeout: DISCONNECT_TIMEOUT_MS,
        ...(address.isTls && { enableTLSForSentinelMode: true, Connector: TlsSentinelConnector }),
        ...(address.sentinelPassword !== undefined && { sentinelPassword: address.sentinelPassword }),
      });
    case 'cluster':
      return purpose === 'subscription'
        ? listenInTurn(address, options)
        : openCluster(purpose, address, options);
  }
}

function openCluster(purpose: RedisPurpose, address: RedisAddress, options: ClientOptions): Cluster {
  const { retryStrategy, enableOfflineQueue, ...redisOptions } = options;
  const cluster = new Cluster([...address.nodes], {
    scaleReads: 'master',
    clusterRetryStrategy: retryStrategy,
    clusterNodeRetryStrategy: retryStrategy,
    // Decisions go through this client only when they are redirected, perhaps to a server that it is still connecting to.
    enableOfflineQueue: purpose === 'decisions',
    // A command that was sent before its connection was closed may have been carried out: a decision is not sent again.
    ...(purpose === 'decisions' && { retryDelayOnFailover: 0 }),
    // The cluster is down for as long as a failover takes: commands fail at once instead of waiting for it.
    retryDelayOnClusterDown: 0,
    // TRYAGAIN: a slot is being migrated, and only some of the command's keys have arrived.
    retryDelayOnTryAgain: TRY_AGAIN_MS,
    slotsRefreshInterval: SLOTS_REFRESH_MS,
    // By default the client connects to the address that it finds for a name: a certificate is then checked against the address, and one
    // name that is unknown fails all.
    dnsLookup: (name, found) => found(null, name),
    redisOptions,
  });
  if (address.isTls) {
    cluster.on('+node', ({ options: server }: Redis) => {
      server.tls = tlsTo(server.host ?? '');
    });
  }
  connectServers(cluster);
  return cluster;
}

/**
 * Connects to each master once the cluster is known: the client would with the first command, which would have to wait. Before that the
 * client needs unconnected servers: it never recovers if all connections to those of the URL fail meanwhile.
 */
function connectServers(cluster: Cluster): void {
  const connect = (server: Redis) => {
    if (server.status === 'wait' && !server.options.readOnly) server.connect().catch(() => {});
  };
  cluster.on('ready', () => cluster.nodes('master').forEach(connect));
  cluster.on('+node', (server: Redis) => {
    if (cluster.status === 'ready') connect(server);
  });
}

/** Messages reach all servers of a cluster. The client's own subscription changes servers without reporting missed messages. */
function listenInTurn(address: RedisAddress, options: ClientOptions): Redis {
  const redis = new Redis({
    ...options,
    ...serverOptions(address, 0),
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  });
  let turn = 0;
  redis.on('reconnecting', () => {
    turn += 1;
    Object.assign(redis.options, serverOptions(address, turn));
  });
  return redis;
}

/** How to connect to the server of the URL whose turn it is. */
function serverOptions(
  { nodes, isTls }: RedisAddress,
  turn: number,
): Pick<RedisOptions, 'host' | 'port' | 'tls'> {
  const server = nodes[turn % nodes.length];
  return { ...server, ...(isTls && server !== undefined && { tls: tlsTo(server.host) }) };
}

/**
 * Ends each attempt to connect whose SELECT fails: the client would go on in database 0, which may be another installation's. It only
 * emits the error; thrown from a listener, the error ends the attempt as that of a failed AUTH does, and is emitted once more.
 */
function requireDatabase(redis: Redis): void {
  const select = redis.select.bind(redis);
  const failures = new WeakSet<Error>();
  redis.select = (database: number | string) =>
    select(database).catch((error: Error) => {
      failures.add(error);
      throw error;
    });
  redis.on('error', (error: Error) => {
    if (failures.delete(error)) throw error;
  });
}

function commonOptions(purpose: RedisPurpose, settings: RedisSettings, random: Random): ClientOptions {
  const retryStrategy = (attempt: number) => retryDelayMs(attempt, random);
  const timeouts = connectionTimeouts(settings.timeoutMs);
  const common: ClientOptions = {
    retryStrategy,
    autoResendUnfulfilledCommands: false,
    // `RedisChangeFeed` resubscribes: a failure of the client's own attempt has no handler, and would end the process.
    autoResubscribe: false,
    enableReadyCheck: true,
    connectTimeout: timeouts.connectMs,
    connectionName: `tollgate-${purpose}`,
    // A server that became a replica rejects writes: connecting again finds the current master.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
  if (purpose === 'subscription') {
    return { ...common, maxRetriesPerRequest: null, socketTimeout: timeouts.subscriptionMs };
  }
  return {
    ...common,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    // Decisions have a shorter timeout that leaves out pauses of this process; `closeUnresponsive` watches their sockets.
    ...(purpose !== 'decisions' && {
      commandTimeout: timeouts.commandMs,
      socketTimeout: timeouts.unresponsiveMs,
    }),
  };
}

function credentials(address: RedisAddress): ClientOptions & { tls?: object } {
  return {
    ...(address.username !== undefined && { username: address.username }),
    ...(address.password !== undefined && { password: address.password }),
    ...(address.isTls && { tls: {} }),
  };
}

/** Doubles up to the cap; half of it is random, so that replicas do not come back all at once. */
function retryDelayMs(attempt: number, random: Random): number {
  const cap = Math.min(FIRST_RETRY_MS * 2 ** Math.min(attempt - 1, 16), LONGEST_RETRY_MS);
  const fraction = (random.bytes(1)[0] ?? 0) / 256;
  return Math.round(cap / 2 + (cap / 2) * fraction);
}

/** Logs one line when the connection is lost or can't be made and one when it is back, however many attempts lie between. */
function logStateChanges(redis: RedisConnection, log: Logger): void {
  if (redis instanceof Cluster) {
    redis.on('+node', (node: Redis) =>
      logStateChanges(node, log.child({ node: `${node.options.host}:${node.options.port}` })),
    );
  }
  let isLost = false;
  let reason: Error | undefined;
  const lost = () => {
    if (isLost) return;
    isLost = true;
    const facts = { reason: messageOf(reason) ?? 'the connection was closed', code: codeOf(reason) };
    log.warn(facts, 'Redis connection lost');
  };
  redis.on('error', (error: Error) => {
    reason = safeRedisError(error);
    if (redis.status !== 'ready') lost();
  });
  // Not 'close', which is also emitted when this process closes the connection.
  redis.on('reconnecting', lost);
  redis.on('ready', () => {
    if (isLost) log.info('Redis connection is back');
    isLost = false;
    reason = undefined;
  });
}

/** In a cluster also why the last node could not be used. */
function messageOf(error: Error | undefined): string | undefined {
  return error?.cause instanceof Error ? `${error.message} ${error.cause.message}` : error?.message;
}

function codeOf(error: Error | undefined): unknown {
  return error !== undefined && 'code' in error ? error.code : undefined;
}

/** The timeouts of a connection to Redis. All are milliseconds. */
interface ConnectionTimeouts {
  readonly connectMs: number;
  /** Of all commands but decisions, which have a shorter one. */
  readonly commandMs: number;
  /** A connection on which nothing has arrived for this long, although something was sent, is closed. */
  readonly unresponsiveMs: number;
  /** The same for the connection of the change feed. */
  readonly subscriptionMs: number;
}

/** Everything but a decision may take ten times as long as a decision may, `decisionMs`, and at least two seconds. */
function connectionTimeouts(decisionMs: number): ConnectionTimeouts {
  const patientMs = Math.max(10 * decisionMs, 2000);
  return {
    connectMs: patientMs,
    commandMs: patientMs,
    unresponsiveMs: 2 * patientMs,
    subscriptionMs: 3 * patientMs,
  };
}

/** How often a connection is checked within the timeout after which it is closed. */
const LOOKS = 4;

/**
 * Closes a connection if something was written and nothing has arrived for `timeoutMs` (up to a quarter longer): its server is gone
 * without having closed it. The client's `socketTimeout` would set and clear a timer, and add and remove a listener, for each command.
 */
function closeUnresponsive(redis: Redis | Cluster, timeoutMs: number): void {
  if (redis instanceof Cluster) redis.on('+node', (node: Redis) => watch(node, timeoutMs));
  else watch(redis, timeoutMs);
}

function watch(redis: Redis, timeoutMs: number): void {
  let seen = { stream: redis.stream, read: 0, written: 0 };
  // Counts checks, not milliseconds: after a pause of this process there may be replies that it has not read yet.
  let inVain = 0;
  const timer = setInterval(() => {
    const { stream } = redis;
    // Undefined before the first attempt to connect.
    const { bytesRead: read = 0, bytesWritten: written = 0 } = stream ?? {};
    const isUnresponsive = stream === seen.stream && read === seen.read && written > seen.written;
    if (!isUnresponsive) {
      seen = { stream, read, written };
      inVain = 0;
      return;
    }
    inVain += 1;
    if (inVain > LOOKS) stream.destroy(new Error(`Nothing has arrived for ${timeoutMs} ms.`));
  }, timeoutMs / LOOKS);
  timer.unref();
  redis.once('end', () => clearInterval(timer));
}
