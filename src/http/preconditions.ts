import type { IncomingMessage } from 'node:http';
import { TollgateError } from '../errors.ts';

/** Whether a request may be performed on a resource with this entity tag; undefined = there is no such resource. */
export type TagCondition = (etag: string | undefined) => boolean;

/**
 * What `If-Match` and `If-None-Match` demand (RFC 9110 section 13.1), undefined for a request without either. Throws `bad_request` for a
 * header that is neither `*` nor a list of entity tags: a condition that can't be read must not be ignored.
 */
export function readPreconditions({ headers }: IncomingMessage): TagCondition | undefined {
  const wanted = readTags('If-Match', headers['if-match']);
  const unwanted = readTags('If-None-Match', headers['if-none-match']);
  if (wanted === undefined && unwanted === undefined) return undefined;
  return (etag) =>
    (wanted === undefined || isAmong(wanted, etag, isSame)) &&
    (unwanted === undefined || !isAmong(unwanted, etag, isEquivalent));
}

type Tags = '*' | readonly string[];

const TAG = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/;
/** Empty elements are allowed in a list (RFC 9110 section 5.6.1.2). Takes linear time: no two parts match the same text. */
const LIST = new RegExp(`^[ \\t,]*${TAG.source}(?:[ \\t]*,[ \\t,]*${TAG.source})*[ \\t,]*$`);

function readTags(name: string, value: string | undefined): Tags | undefined {
  if (value === undefined) return undefined;
  if (value.trim() === '*') return '*';
  if (LIST.test(value)) return value.match(new RegExp(TAG.source, 'g')) ?? [];
  throw new TollgateError('bad_request', `The header ${name} must be * or a list of entity tags in quotes.`);
}

function isAmong(tags: Tags, etag: string | undefined, equal: (a: string, b: string) => boolean): boolean {
  if (etag === undefined) return false;
  return tags === '*' || tags.some((tag) => equal(tag, etag));
}

/** Strong comparison (RFC 9110 section 8.8.3.2): a weak tag is never the same as another. */
function isSame(tag: string, etag: string): boolean {
  return tag === etag && !tag.startsWith('W/');
}

/** Weak comparison. */
function isEquivalent(tag: string, etag: string): boolean {
  return tag.replace(/^W\//, '') === etag.replace(/^W\//, '');
}
