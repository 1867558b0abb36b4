import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { ChaosReplica } from './chaos-replica.ts';
import type { ChaosKey, World } from './world.ts';

/** How a request ended, as its client saw it. */
export interface Attempt {
  readonly key: ChaosKey;
  readonly replica: ChaosReplica;
  readonly way: 'proxied' | 'nginx';
  readonly startedAt: number;
  readonly endedAt: number;
  /** `cut`: the response began and did not end. `none`: the connection ended first. `late`: nothing for a minute. */
  readonly end: 'complete' | 'cut' | 'none' | 'late';
  /** Of a response that began; otherwise 0. */
  readonly status: number;
  /** The window that Redis counted it in, by its end in epoch seconds; undefined when Redis was not asked. */
  readonly window: number | undefined;
  /** The code of an error; empty where there was none. */
  readonly code: string;
  /** The limit that the response named; undefined when Redis was not asked. */
  readonly limit: number | undefined;
}

/** Requests under way and over. */
export interface Load {
  readonly attempts: Attempt[];
  /** No more requests; resolves when those under way are over. */
  stop(): Promise<void>;
}

export const CLIENTS = 24;
/** Between two requests of a client. Milliseconds. */
const PAUSE_MS = 10;
const LATE_MS = 60_000;
/** One round of all replicas and keys in so many goes through nginx. */
const ROUNDS_OF_ALL = 3;

/** Clients that go round the replicas and the keys, a third of their requests through nginx where there is one. */
export function startLoad({ replicas }: Pick<World, 'replicas'>, keys: readonly ChaosKey[]): Load {
  const attempts: Attempt[] = [];
  let isStopped = false;
  const client = async (number: number): Promise<void> => {
    const agent = new Agent({ keepAlive: number % 2 === 0, maxSockets: 1 });
    for (let turn = number; !isStopped; turn += 1) {
      const replica = replicas[turn % replicas.length];
      const key = keys[Math.floor(turn / replicas.length) % keys.length];
      if (replica === undefined || key === undefined) throw new Error('nothing to ask');
      const round = Math.floor(turn / (replicas.length * keys.length));
      const way = replica.frontUrl !== undefined && round % ROUNDS_OF_ALL === 0 ? 'nginx' : 'proxied';
      attempts.push(await attempt(key, replica, { agent, path: `/${turn % 5}`, way }));
      await wait(PAUSE_MS);
    }
    agent.destroy();
  };
  const clients = Array.from({ length: CLIENTS }, (_, number) => client(number));
  return {
    attempts,
    stop: async () => {
      isStopped = true;
      await Promise.all(clients);
    },
  };
}

interface Sent extends Pick<Attempt, 'way'> {
  readonly agent: Agent;
  readonly path: string;
}

/** Sends one request. Never rejects. */
export function attempt(key: ChaosKey, replica: ChaosReplica, { agent, path, way }: Sent): Promise<Attempt> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    let status = 0;
    let window: number | undefined;
    let limit: number | undefined;
    let body = '';
    const over = (end: Attempt['end']) =>
      resolve({
        key,
        replica,
        way,
        startedAt,
        endedAt: performance.now(),
        end,
        status,
        window,
        limit,
        code: codeIn(status, body),
      });
    const req = request(`${way === 'nginx' ? replica.frontUrl : replica.url}${path}`, {
      agent,
      headers: { authorization: `Bearer ${key.secret}` },
    });
    const late = setTimeout(() => {
      over('late');
      req.destroy();
    }, LATE_MS);
    req.once('close', () => clearTimeout(late));
    req.once('error', () => over(status === 0 ? 'none' : 'cut'));
    req.once('response', (res) => {
      status = res.statusCode ?? 0;
      const reset = res.headers['x-ratelimit-reset'];
      window = reset === undefined ? undefined : Number(reset);
      const shown = res.headers['x-ratelimit-limit'];
      limit = shown === undefined ? undefined : Number(shown);
      res.once('error', () => over('cut'));
      res.once('end', () => over('complete'));
      res.setEncoding('utf8').on('data', (text: string) => {
        if (status >= 400) body += text;
      });
    });
    req.end();
  });
}

function codeIn(status: number, body: string): string {
  return status < 400 ? '' : (/"code":"(\w+)"/.exec(body)?.[1] ?? '');
}
