import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';
import { untilReplicating } from './on-redis.ts';
import { type RedisServer, startRedisServer } from './redis-server.ts';
import { until } from './until.ts';

/** One server of a cluster. */
interface ClusterNode {
  readonly server: RedisServer;
  readonly id: string;
  /** A connection to this server only. */
  readonly direct: Redis;
}

/** A Redis Cluster of a test's own. */
export interface RedisCluster {
  /** Of the primaries, as `REDIS_URL` has it. */
  readonly url: string;
  readonly primaries: readonly ClusterNode[];
  /** Adds a server that copies a primary and takes over when that fails. */
  addReplica(of: ClusterNode): Promise<ClusterNode>;
  /** The primary that has a slot now. */
  ownerOf(slot: number): Promise<ClusterNode>;
  /** Begins to move a slot: all of its keys are still where they were. */
  beginMove(slot: number, to: ClusterNode): Promise<void>;
  /** Moves a slot with its keys, as resharding does. Waits for `halfway` once half of them are moved. */
  moveSlot(slot: number, to: ClusterNode, halfway?: Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

const SLOTS = 16_384;
/** A busy machine must not make the servers take each other for dead. */
const NODE_TIMEOUT_MS = 4000;

/** Opens a store in a new cluster, which stops when the store is closed. */
export async function openInCluster<Store extends { close(): Promise<void> }>(
  open: (url: string) => Promise<Store>,
): Promise<Store> {
  const cluster = await startRedisCluster(3);
  const store = await open(cluster.url);
  const close = async (): Promise<void> => {
    await store.close();
    await cluster.stop();
  };
  return { ...store, close };
}

/** Starts so many primaries that share the slots evenly, with `args` for each. */
export async function startRedisCluster(count: number, args: readonly string[] = []): Promise<RedisCluster> {
  const nodes: ClusterNode[] = [];
  const stop = async () => {
    for (const { direct, server } of nodes) {
      direct.disconnect();
      await server.stop();
    }
  };
  const add = async (): Promise<ClusterNode> => {
    const server = await startRedisServer(await clusterArgs(args));
    const direct = new Redis(server.url);
    direct.on('error', () => {});
    const node = { server, direct, id: String(await direct.cluster('MYID')) };
    nodes.push(node);
    return node;
  };
  try {
    const primaries = await Promise.all(Array.from({ length: count }, add));
    for (const [index, { direct }] of primaries.entries()) {
      const first = Math.floor((index * SLOTS) / count);
      const last = Math.floor(((index + 1) * SLOTS) / count) - 1;
      await direct.call('CLUSTER', 'ADDSLOTSRANGE', String(first), String(last));
      await direct.call('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
    }
    await meet(primaries);
    await untilAgreed(nodes);
    return {
      url: primaries.map(({ server }) => server.url).join(','),
      primaries,
      addReplica: async (of) => {
        const node = await add();
        await meet([of, node]);
        await until(async () => String(await node.direct.cluster('NODES')).includes(of.id));
        await node.direct.call('CLUSTER', 'REPLICATE', of.id);
        await untilReplicating(node.server.url);
        await untilAgreed(nodes);
        return node;
      },
      ownerOf: (slot) => ownerOf(primaries, slot),
      beginMove: async (slot, to) => setMoving(slot, { from: await ownerOf(primaries, slot), to }),
      moveSlot: (slot, to, halfway) => moveSlot(primaries, { slot, to, halfway }),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** What makes a server a node of a cluster. */
export async function clusterArgs(args: readonly string[] = []): Promise<readonly string[]> {
  // The port of the bus is 10000 above the other by default, which is too high for many free ports.
  const busPort = String(await freePort());
  return [
    ...['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1', '--cluster-port', busPort],
    ...['--cluster-node-timeout', String(NODE_TIMEOUT_MS), ...args],
  ];
}

async function meet([first, ...others]: readonly ClusterNode[]): Promise<void> {
  for (const { direct, server } of others) {
    const [, busPort] = (await direct.call('CONFIG', 'GET', 'cluster-port')) as string[];
    await first?.direct.call('CLUSTER', 'MEET', '127.0.0.1', String(server.port), String(busPort));
  }
}

async function untilAgreed(nodes: readonly ClusterNode[]): Promise<void> {
  await until(async () => {
    const infos = await Promise.all(nodes.map(({ direct }) => direct.cluster('INFO')));
    return infos.every(
      (info) =>
        String(info).includes('cluster_state:ok') &&
        String(info).includes(`cluster_known_nodes:${nodes.length}`),
    );
  });
}

/**
 * The primary that all of them take for the slot's owner, in the same epoch. Until all know its latest epoch, what they gossip of the
 * time before can make them take the slot back from it.
 */
async function ownerOf(primaries: readonly ClusterNode[], slot: number): Promise<ClusterNode> {
  let owner: ClusterNode | undefined;
  await until(async () => {
    const [first, ...others] = await Promise.all(primaries.map((node) => ownerSeenBy(node, slot)));
    const isAgreed = others.every((seen) => seen?.id === first?.id && seen?.epoch === first?.epoch);
    owner = isAgreed ? primaries.find(({ id }) => id === first?.id) : undefined;
    return owner !== undefined;
  });
  if (owner === undefined) throw new Error(`no server has slot ${slot}`);
  return owner;
}

async function ownerSeenBy(
  { direct }: ClusterNode,
  slot: number,
): Promise<{ id: string; epoch: string } | undefined> {
  const nodes = String(await direct.cluster('NODES'));
  for (const line of nodes.split('\n')) {
    const [id = '', , , , , , epoch = '', , ...ranges] = line.split(' ');
    // Behind the ranges come slots on the move, in brackets.
    const isOwner = ranges.some((range) => {
      const [first = Number.NaN, last = first] = range.split('-').map(Number);
      return slot >= first && slot <= last;
    });
    if (isOwner) return { id, epoch };
  }
  return undefined;
}

interface SlotMove {
  readonly slot: number;
  readonly to: ClusterNode;
  readonly halfway: Promise<void> | undefined;
}

async function moveSlot(primaries: readonly ClusterNode[], { slot, to, halfway }: SlotMove): Promise<void> {
  const from = await ownerOf(primaries, slot);
  if (from === to) return;
  await setMoving(slot, { from, to });
  if (halfway !== undefined) {
    const count = Number(await from.direct.cluster('COUNTKEYSINSLOT', slot));
    await moveKeys(from, to, await keysInSlot(from, slot, Math.ceil(count / 2)));
    await halfway;
  }
  for (;;) {
    const names = await keysInSlot(from, slot, 100);
    if (names.length === 0) break;
    await moveKeys(from, to, names);
  }
  for (const node of [to, from, ...primaries.filter((other) => other !== to && other !== from)]) {
    await node.direct.cluster('SETSLOT', slot, 'NODE', to.id);
  }
}

async function setMoving(
  slot: number,
  { from, to }: { readonly from: ClusterNode; readonly to: ClusterNode },
): Promise<void> {
  await to.direct.cluster('SETSLOT', slot, 'IMPORTING', from.id);
  await from.direct.cluster('SETSLOT', slot, 'MIGRATING', to.id);
}

async function keysInSlot({ direct }: ClusterNode, slot: number, most: number): Promise<readonly string[]> {
  return (await direct.cluster('GETKEYSINSLOT', slot, most)) as string[];
}

async function moveKeys(from: ClusterNode, to: ClusterNode, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  await from.direct.call('MIGRATE', '127.0.0.1', String(to.server.port), '', '0', '5000', 'KEYS', ...names);
}
