import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { systemCodeOf } from '../../../../platform/system-code.ts';
import { CommandFault } from '../../../command-fault.ts';
import { csvRows } from './csv-rows.ts';
import { jsonLineRows } from './json-line-rows.ts';
import type { Row } from './row.ts';

/** The result of reading a whole file before any of it is sent. */
export interface Survey {
  readonly rows: number;
  /** SHA-256 of the content, in hexadecimal digits. */
  readonly digest: string;
}

/** Reads a file once. Throws a `CommandFault` if it can't be read or split into rows. */
export async function surveyOf(path: string): Promise<Survey> {
  const hash = createHash('sha256');
  let rows = 0;
  for await (const _row of rowsOf(hashed(createReadStream(path), hash), () => {})) rows += 1;
  return { rows, digest: hash.digest('hex') };
}

async function* hashed(bytes: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    hash.update(chunk);
    yield chunk;
  }
}

/**
 * The rows of CSV, or of JSON lines if the first character is a brace. `onHeader` gets the first row of CSV in the form that the file of
 * rejected rows needs.
 */
export async function* rowsOf(
  bytes: AsyncIterable<Buffer>,
  onHeader: (header: string) => void,
): AsyncGenerator<Row> {
  const texts = decoded(bytes);
  let start = '';
  while (start.trim() === '') {
    const { value, done } = await texts.next();
    if (done) throw new CommandFault('usage', 'The file is empty.');
    start = value;
  }
  if (start.trimStart().startsWith('['))
    throw new CommandFault('usage', "The file is a JSON list: jq -c '.[]' makes JSON lines of it.");
  const chunks = startingWith(start, texts);
  yield* start.trimStart().startsWith('{') ? jsonLineRows(chunks) : csvRows(chunks, onHeader);
}

/** Decodes UTF-8 without its byte order mark. Another encoding would change the names of keys, and is rejected. */
async function* decoded(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    for await (const chunk of bytes) yield decoder.decode(chunk, { stream: true });
    yield decoder.decode();
  } catch (error) {
    const code = systemCodeOf(error);
    const fault = code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'is not UTF-8' : `can not be read (${code})`;
    throw new CommandFault('usage', `The file ${fault}.`, { cause: error });
  }
}

async function* startingWith(start: string, rest: AsyncGenerator<string>): AsyncGenerator<string> {
  yield start;
  yield* rest;
}
