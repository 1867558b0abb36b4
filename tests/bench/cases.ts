/** Which keys a case's requests present. */
export type KeySet = 'hundred' | 'three_limits' | 'eight_limits' | 'one' | 'spent' | 'ten_thousand';

/** What the clients of a case send. */
export interface BenchCase {
  readonly id: string;
  /** For the table. */
  readonly title: string;
  readonly keys: KeySet;
  readonly method: 'GET' | 'POST';
  /** The backend responds with 932 bytes everywhere but below `/large`, where it responds with 64 kB. */
  readonly path: string;
  readonly body: 'none' | 'length' | 'chunked';
  /** Of 100 requests, so many say `Connection: close`. */
  readonly closePercent: number;
  /** Every request is over its key's limit. */
  readonly isLimited: boolean;
  /** Keep-alive connections, each with one request after the other; 64 by default. */
  readonly connections?: number;
  /** Requests a second, whatever the responses do, instead of as many as come through. */
  readonly ratePerSecond?: number;
}

const ALLOWED = {
  keys: 'hundred',
  method: 'GET',
  path: '/v1/items',
  body: 'none',
  closePercent: 0,
  isLimited: false,
} as const;

/** The case that the budget is about. */
export const MAIN_CASE: BenchCase = { ...ALLOWED, id: 'allowed', title: '100 keys, allowed' };

/** All cases, in the order of the table. */
export const CASES: readonly BenchCase[] = [
  MAIN_CASE,
  { ...ALLOWED, id: 'three-limits', title: '100 keys, three limits', keys: 'three_limits' },
  { ...ALLOWED, id: 'eight-limits', title: '100 keys, eight limits', keys: 'eight_limits' },
  { ...ALLOWED, id: 'hot-key', title: 'one hot key', keys: 'one' },
  { ...ALLOWED, id: 'over-limit', title: 'a key over its limit (429)', keys: 'spent', isLimited: true },
  { ...ALLOWED, id: 'many-keys', title: '10 000 keys', keys: 'ten_thousand' },
  { ...ALLOWED, id: 'post-length', title: 'POST of 10 kB, Content-Length', method: 'POST', body: 'length' },
  { ...ALLOWED, id: 'large-responses', title: 'responses of 64 kB', path: '/large/items' },
  { ...ALLOWED, id: 'closing', title: '2 % of requests with Connection: close', closePercent: 2 },
  { ...ALLOWED, id: 'one-connection', title: '1 connection', connections: 1 },
  { ...ALLOWED, id: 'four-connections', title: '4 connections', connections: 4 },
  { ...ALLOWED, id: 'sixteen-connections', title: '16 connections', connections: 16 },
  { ...ALLOWED, id: 'rate-200', title: '200 requests a second', ratePerSecond: 200 },
  { ...ALLOWED, id: 'rate-1000', title: '1000 requests a second', ratePerSecond: 1000 },
  // The last, because the Express build loses backend connections to clients that leave in mid-body, until it responds with no more.
  { ...ALLOWED, id: 'post-chunked', title: 'POST of 10 kB, chunked', method: 'POST', body: 'chunked' },
];
