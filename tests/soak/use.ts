import { Agent, get, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { ChaosReplica } from '../chaos/chaos-replica.ts';
import { startChanges } from '../chaos/events/changes-of-keys.ts';
import { attempt } from '../chaos/load.ts';
import type { ChaosKey, World } from '../chaos/world.ts';
import { Admin } from '../support/admin.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';

const CLIENTS = 8;
/** Milliseconds. */
const PAUSE_MS = 100;
const LATE_MS = 30_000;
const WATCH_MS = 5000;
const MOODS = ['rejecting', 'hanging', 'truncating'] as const;
const READ_PATHS = [
  '/consumer-api-key',
  '/api-keys/usage',
  '/rate-limit',
  '/tollgate/audit-log',
  '/tollgate/config',
  '/tollgate/system',
];
const BODY = Buffer.alloc(64 * 1024, 'soak ');

/** Everything that goes on at once until it is stopped, and how requests ended. */
export interface Use {
  readonly endings: ReadonlyMap<string, number>;
  /** Resolves when what was under way is over; rejects where something failed that should not. */
  stop(): Promise<void>;
}

/**
 * Uses the replicas as a day would: requests of good and of unknown keys on kept and on new connections, bodies, upgrades, clients that hang up,
 * a backend that fails now and then, decisions for nginx, changes of keys, lists, exports, watchers of the stream, scrapes.
 */
export function startUse(world: World, keys: readonly ChaosKey[]): Use {
  const { replicas } = world;
  const endings = new Map<string, number>();
  const count = (ending: string) => endings.set(ending, (endings.get(ending) ?? 0) + 1);
  let isStopped = false;
  const repeat = async (pauseMs: number, act: (turn: number) => Promise<void>): Promise<void> => {
    for (let turn = 0; !isStopped; turn += 1) {
      await act(turn);
      await wait(pauseMs);
    }
  };
  const pick = (turn: number) => {
    const replica = replicas[turn % replicas.length];
    const key = keys[Math.floor(turn / replicas.length) % keys.length];
    if (replica === undefined || key === undefined) throw new Error('nothing to ask');
    return { replica, key };
  };
  const requests = async (number: number): Promise<void> => {
    const agent = new Agent({ keepAlive: number % 2 === 0, maxSockets: 1 });
    await repeat(PAUSE_MS, async (turn) => {
      const { replica, key } = pick(turn + number);
      const way = turn % 3 === 0 ? 'nginx' : 'proxied';
      const { end, status } = await attempt(key, replica, { agent, path: `/${turn % 50}`, way });
      count(`${way}: ${end} ${status}`);
    });
    agent.destroy();
  };
  const guess = async (turn: number): Promise<void> => {
    count(`unknown key: ${await send({ replica: pick(turn).replica, secret: `unknown-${turn}` })}`);
  };
  const upload = async (turn: number): Promise<void> => {
    const { replica, key } = pick(turn);
    count(`upload: ${await send({ replica, secret: key.secret, body: BODY })}`);
  };
  const hangUp = (turn: number) =>
    new Promise<void>((resolve) => {
      const { replica, key } = pick(turn);
      const req = request(`${replica.url}/hang-up`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key.secret}` },
      });
      req.once('error', () => {}).once('close', () => resolve());
      req.write(BODY);
      setImmediate(() => req.destroy(new Error('gone')));
      count('hung up');
    });
  const upgrade = (turn: number) =>
    new Promise<void>((resolve) => {
      const { replica, key } = pick(turn);
      const req = get(`${replica.url}/upgrade`, {
        headers: { authorization: `Bearer ${key.secret}`, connection: 'upgrade', upgrade: 'echo' },
        signal: AbortSignal.timeout(LATE_MS),
      });
      const over = (ending: string) => {
        count(`upgrade: ${ending}`);
        resolve();
      };
      req.once('error', () => over('no response'));
      req.once('response', (res) => res.resume().once('close', () => over(String(res.statusCode))));
      req.once('upgrade', (_, socket) => {
        socket.once('error', () => {}).once('close', () => over('101'));
        socket.once('data', () => socket.end());
        socket.write('hello');
      });
    });
  const watch = async (turn: number): Promise<void> => {
    const leaving = new AbortController();
    const leave = setTimeout(() => leaving.abort(), WATCH_MS);
    try {
      const response = await fetch(`${pick(turn).replica.url}/tollgate/events`, {
        headers: { authorization: `Bearer ${ROOT_TOKEN}` },
        signal: leaving.signal,
      });
      count(`stream: ${response.status}`);
      await response.text();
    } catch (error) {
      if (!leaving.signal.aborted) throw error;
    } finally {
      clearTimeout(leave);
    }
  };
  const administer = async (turn: number): Promise<void> => {
    const { replica } = pick(turn);
    const admin = new Admin(replica.url);
    for (const path of READ_PATHS) count(`GET ${path}: ${(await admin.call('GET', path)).status}`);
    const scrape = await fetch(`${replica.opsUrl}/metrics`);
    await scrape.text();
    count(`scrape: ${scrape.status}`);
  };
  const disturb = async (turn: number): Promise<void> => {
    world.backend.setMood(MOODS[turn % MOODS.length] ?? 'well');
    await wait(1000);
    world.backend.setMood('well');
  };
  const changes = startChanges(world);
  const all = [
    ...Array.from({ length: CLIENTS }, (_, number) => requests(number)),
    repeat(200, guess),
    repeat(500, upload),
    repeat(500, hangUp),
    repeat(500, upgrade),
    repeat(1000, watch),
    repeat(2000, administer),
    repeat(60_000, disturb),
  ];
  const over = Promise.all(all);
  // `stop` tells of it.
  over.catch(() => {});
  return {
    endings,
    stop: async () => {
      isStopped = true;
      await changes.stop();
      await over;
    },
  };
}

interface Sent {
  readonly replica: ChaosReplica;
  readonly secret: string;
  readonly body?: Buffer;
}

/** Sends a request on a new connection. Resolves with the status, 0 where there was no response. */
function send({ replica, secret, body }: Sent): Promise<number> {
  return new Promise((resolve) => {
    const req = request(`${replica.url}/sent`, {
      method: body === undefined ? 'GET' : 'POST',
      agent: false,
      signal: AbortSignal.timeout(LATE_MS),
      headers: { authorization: `Bearer ${secret}` },
    });
    req.once('error', () => resolve(0));
    req.once('response', (res) => {
      res.once('error', () => {}).once('close', () => resolve(res.statusCode ?? 0));
      res.resume();
    });
    req.end(body);
  });
}
