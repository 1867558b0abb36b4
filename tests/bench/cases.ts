/** Which keys a case's requests present. */
export type KeySet = 'hundred' | 'one' | 'spent' | 'ten_thousand';

/** What the clients of a case send. */
export interface BenchCase {
  readonly id: string;
  /** For the table. */
  readonly title: string;
  readonly keys: KeySet;
  readonly method: 'GET' | 'POST';
  /** The backend answers 932 bytes everywhere but below `/large`, where it answers 64 kB. */
  readonly path: string;
  readonly body: 'none' | 'length' | 'chunked';
  /** Of 100 requests, so many say `Connection: close`. */
  readonly closePercent: number;
  /** Every request is over its key's limit. */
  readonly isDenied: boolean;
}

const ADMITTED = {
  keys: 'hundred',
  method: 'GET',
  path: '/v1/items',
  body: 'none',
  closePercent: 0,
  isDenied: false,
} as const;

/** The case that the budget is about. */
export const MAIN_CASE: BenchCase = { ...ADMITTED, id: 'admitted', title: '100 keys, admitted' };

/** All cases, in the order of the table. */
export const CASES: readonly BenchCase[] = [
  MAIN_CASE,
  { ...ADMITTED, id: 'hot-key', title: 'one hot key', keys: 'one' },
  { ...ADMITTED, id: 'over-limit', title: 'a key over its limit (429)', keys: 'spent', isDenied: true },
  { ...ADMITTED, id: 'many-keys', title: '10 000 keys', keys: 'ten_thousand' },
  { ...ADMITTED, id: 'post-length', title: 'POST of 10 kB, Content-Length', method: 'POST', body: 'length' },
  { ...ADMITTED, id: 'large-answers', title: 'answers of 64 kB', path: '/large/items' },
  { ...ADMITTED, id: 'closing', title: '2 % of requests with Connection: close', closePercent: 2 },
  // The last, because the Express build loses backend connections to clients that leave in mid-body, until it answers no more.
  { ...ADMITTED, id: 'post-chunked', title: 'POST of 10 kB, chunked', method: 'POST', body: 'chunked' },
];
