/**
 * Who is measured. `tollgate-again` is the same as `tollgate`, in another process: what differs between the two is noise. `tollgate-unwatched` has
 * no `EVENTS_THRESHOLDS`. `tollgate-before` is another checkout, which takes part only with `--against`, and Envoy with a shared limit only with
 * `--envoy` and `--ratelimit`. The last four do less than the others: they show what forwarding alone costs.
 */
export const CANDIDATES = [
  'tollgate',
  'tollgate-again',
  'tollgate-unwatched',
  'tollgate-before',
  'nginx-lua',
  'express',
  'envoy-ratelimit',
  'relay',
  'nginx-plain',
  'haproxy',
  'envoy-plain',
] as const;
export type CandidateName = (typeof CANDIDATES)[number];

/** For tables. */
export const CANDIDATE_TITLES: Readonly<Record<CandidateName, string>> = {
  tollgate: 'Tollgate',
  'tollgate-again': 'Tollgate again (A/A)',
  'tollgate-unwatched': 'Tollgate without thresholds',
  'tollgate-before': 'Tollgate before',
  'nginx-lua': 'nginx + Lua + Redis',
  express: 'Express + http-proxy-middleware',
  'envoy-ratelimit': 'Envoy + ratelimit + Redis',
  relay: 'relay of Node and undici, no keys, no limits',
  'nginx-plain': 'nginx, no keys, no limits',
  haproxy: 'HAProxy, keys and limits in its own memory',
  'envoy-plain': 'Envoy, no keys, no limits',
};

/** These take part in the main case only. */
export const MAIN_CASE_ONLY: readonly CandidateName[] = [
  'tollgate-unwatched',
  'relay',
  'nginx-plain',
  'haproxy',
  'envoy-plain',
];

/** Where a gateway keeps what it counts. */
export interface RedisCountsOfKeys {
  /** A logical database. */
  readonly redisDatabase: number;
  /** The Redis key that holds the requests allowed for a consumer key in its window. */
  countKey(keyId: string): string;
}

/** A gateway that is up. */
export interface Candidate {
  readonly name: CandidateName;
  readonly port: number;
  /** Its processes. */
  pids(): readonly number[];
  /** Where it counts in Redis; undefined: nowhere. */
  readonly counts?: RedisCountsOfKeys;
  /** For one that may stop responding for good: starts it again on the same port. */
  restart?(): Promise<void>;
  stop(): Promise<void>;
}

/** A consumer key that every candidate knows. */
export interface BenchKey {
  readonly id: string;
  readonly secret: string;
  readonly limit: number;
}

/** A window long enough to hold a whole run. */
export const WINDOW_MS = 86_400_000;

/** What the yardsticks read: a line for each key, with the secret, the id and the limit. */
export function keysFile(keys: readonly BenchKey[]): string {
  return keys.map(({ secret, id, limit }) => `${secret} ${id} ${limit}\n`).join('');
}
