import type { Segmentation } from './sequence.ts';

/** What is written to a socket at once, after so many turns. */
export interface Segment {
  readonly turns: number;
  readonly bytes: Buffer;
}

/** Splits a message. The first segment comes at once. */
export function segmentsOf(message: Buffer, { cuts, turns }: Segmentation): Segment[] {
  const ends = [...new Set(cuts.map((cut) => Math.floor(cut * message.length)))].toSorted((a, b) => a - b);
  const bounds = [0, ...ends.filter((end) => end > 0 && end < message.length), message.length];
  return bounds
    .slice(1)
    .map((end, i) => ({ turns: i === 0 ? 0 : turns, bytes: message.subarray(bounds[i], end) }));
}

/** The body that belongs to a token: nothing else of the same length looks like it. */
export function bodyOf(token: string, bytes: number): Buffer {
  return Buffer.alloc(bytes, `${token};`, 'latin1');
}

/** A body in chunks of different sizes, without the last one. */
export function chunksOf(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0, size = 1; at < body.length; at += size, size = size * 7 + 3) {
    const chunk = body.subarray(at, at + size);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`, 'latin1'), chunk, CRLF);
  }
  return Buffer.concat(parts);
}

const CRLF = Buffer.from('\r\n');
/** The end of a body in chunks, and one whose next chunk has no size. */
export const LAST_CHUNK = Buffer.from('0\r\n\r\n');
export const BAD_CHUNK = Buffer.from('zz\r\nno chunk\r\n0\r\n\r\n');
