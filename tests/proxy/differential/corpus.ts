import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createSecret } from '../../../src/secrets/secret-format.ts';

const DIRECTORY = resolve(import.meta.dirname, '../corpus');
/** Those with cases that wait for a timeout come first. */
const FILES = [
  'pipelines',
  'framing',
  'chunks',
  'paths',
  'hop-by-hop',
  'host',
  'versions',
  'fields',
] as const;

/** A key in the form of any other, always the same, because it may become a part of a body. */
export const KEY = createSecret('tg', { bytes: (count) => Buffer.alloc(count, 7) });

/** Bytes of one connection, and how many requests the gateway forwards of them, that of `AFTER` included. */
export interface CorpusCase {
  /** `<file>: <name>` */
  readonly name: string;
  /** One character a byte. */
  readonly bytes: string;
  readonly forwards: number;
}

/** Comes behind the bytes of every case: shows where a gateway thinks that the next request begins. */
export const AFTER = `GET /after HTTP/1.1\r\nHost: after.example\r\nAuthorization: Bearer ${KEY}\r\nConnection: close\r\n\r\n`;

/** `@KEY@` stands for the key. */
type Part = string | { readonly repeat: string; readonly times: number };

/** All cases, in the order of the files. Throws for a name that is there twice. */
export function readCorpus(): readonly CorpusCase[] {
  const cases = FILES.flatMap((file) =>
    readJson<{ name: string; bytes: Part[]; forwards: number }[]>(`${file}.json`).map(
      ({ name, bytes, forwards }) => ({
        name: `${file}: ${name}`,
        bytes: bytes.map(written).join(''),
        forwards,
      }),
    ),
  );
  if (new Set(cases.map(({ name }) => name)).size < cases.length) {
    throw new Error('A case has the name of another.');
  }
  return cases;
}

/** A file of the corpus' directory. */
export function readJson<Content>(name: string): Content {
  return JSON.parse(readFileSync(resolve(DIRECTORY, name), 'utf8')) as Content;
}

function written(part: Part): string {
  return typeof part === 'string' ? part.replaceAll('@KEY@', KEY) : part.repeat.repeat(part.times);
}
