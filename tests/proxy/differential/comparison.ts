import { createHash } from 'node:crypto';
import { readJson } from './corpus.ts';
import type { ReadRequest } from './strict-reading.ts';

/** A program that the gateway is compared with. */
export const YARDSTICKS = ['nginx', 'haproxy'] as const;
export type Yardstick = (typeof YARDSTICKS)[number];

/** Something that the gateway may forward although another does not. `corpus/allowed.json` lists them. */
export interface Allowance {
  readonly who: Yardstick | 'strict reading';
  readonly reason: string;
  /** Of the corpus. */
  readonly cases: readonly string[];
  /** What bytes have that this is about, as a regular expression: for bytes that are in no corpus. */
  readonly bytes: string;
}

/** What the yardsticks forwarded when it was recorded, as `fingerprint` writes it, by the name of the case. */
export type Recorded = Readonly<
  Record<
    Yardstick,
    { readonly version: string; readonly forwarded: Readonly<Record<string, readonly string[]>> }
  >
>;

export function readAllowances(): readonly Allowance[] {
  return readJson<Allowance[]>('allowed.json');
}

export function readRecorded(): Recorded {
  return readJson<Recorded>('recorded.json');
}

const WRITTEN_OUT = 80;

/** What must be the same of a request wherever it arrives: method, target and body. Long ones as a hash. */
export function fingerprint({ method, target, body }: ReadRequest): string {
  const text = `${method} ${target} ${body}`;
  if (text.length <= WRITTEN_OUT) return text;
  const hash = createHash('sha256').update(text, 'latin1').digest('hex').slice(0, 16);
  return `${text.slice(0, WRITTEN_OUT - 20)}... ${text.length} bytes, ${hash}`;
}

/** Whether all of `these` are among `those`, in the same order. */
export function areAmong(these: readonly string[], those: readonly string[]): boolean {
  let found = 0;
  for (const item of those) if (found < these.length && item === these[found]) found += 1;
  return found === these.length;
}
