import type { FormatFaults, Formats } from '../http/body-schema.ts';
import { isExternalId } from '../keys/external-id.ts';
import { isKeyName } from '../keys/key-name.ts';
import { isOriginEntry, writtenOrigin } from '../keys/origin-list.ts';
import { secretFault } from '../keys/secrets/secret-redactor.ts';
import { parsePeriod, periodFault } from '../limiter/period.ts';
import { pathPatternFault } from '../paths/path-pattern.ts';
import { hasHostBits, isNetwork, networkWithoutHostBits } from '../platform/address-list.ts';
import { hasControlCharacter, isStorable, lengthOf } from '../platform/text/storable-text.ts';
import { isoUtcFault, parseIsoUtc } from '../platform/timestamps.ts';

/** Formats of bodies that JSON Schema's own keywords can't express. */
export const BODY_FORMATS: Formats = {
  'key-name': isKeyName,
  'stored-text': isStorable,
  'external-id': isExternalId,
  period: (text) => parsePeriod(text) !== undefined,
  'path-pattern': (text) => pathPatternFault(text) === undefined,
  'utc-instant': (text) => parseIsoUtc(text) !== undefined,
  'ip-network': (text) => isNetwork(text) && !hasHostBits(text),
  'page-origin': isOriginEntry,
  'shown-name': (text) => secretFault(text) === undefined,
};

/** Explains which part of a long rule a text breaks. */
export const BODY_FORMAT_FAULTS: FormatFaults = {
  period: periodFault,
  'utc-instant': isoUtcFault,
  'path-pattern': (text) => {
    const fault = pathPatternFault(text);
    return fault === undefined ? undefined : `it ${fault}`;
  },
  'ip-network': (text) => {
    const network = networkWithoutHostBits(text);
    return network === undefined ? undefined : `the network that it is in is ${network}`;
  },
  'page-origin': (text) => {
    const written = writtenOrigin(text);
    return written === undefined ? undefined : `this one is written ${written}`;
  },
  'shown-name': secretFault,
};

/** The rule of an instant in a query. */
export const INSTANT_RULE =
  'must be an instant as YYYY-MM-DDThh:mm:ssZ (UTC), or a date as YYYY-MM-DD, which is its first instant in UTC';

const DATE = /^\d{4}-\d{2}-\d{2}$/;

/**
 * Reads an instant of a query, in milliseconds since 1970; undefined if the text is not one. For a date, `startOf` turns its midnight in
 * UTC into the first instant of that day in another time zone.
 */
export function queryInstant(
  text: string,
  startOf = (midnightMs: number): number | undefined => midnightMs,
): number | undefined {
  if (DATE.test(text)) {
    const midnightMs = parseIsoUtc(`${text}T00:00:00Z`);
    return midnightMs === undefined ? undefined : startOf(midnightMs);
  }
  // In a query that was not percent-encoded, "+" is decoded as a space.
  return parseIsoUtc(text.replace(/ (?=\d\d:\d\d$)/, '+'));
}

/** The first instant of 1970 in the first time zone that has it: a date of 1970 begins earlier there than in UTC. */
const EARLIEST_MS = -14 * 3_600_000;
const LATEST_MS = Date.UTC(9999, 0, 1);

/** Whether every store can be queried for this instant, in milliseconds since 1970. */
export function isRecordedInstant(ms: number): boolean {
  return ms >= EARLIEST_MS && ms < LATEST_MS;
}

/** `queryInstant`, but undefined for an instant that not every store can be queried for. */
export function recordedInstant(...text: Parameters<typeof queryInstant>): number | undefined {
  const ms = queryInstant(...text);
  return ms !== undefined && isRecordedInstant(ms) ? ms : undefined;
}

/** The longest text to search for, in characters. */
export const LONGEST_SEARCH = 255;

/** The rule of a text to search for. */
export const SEARCH_RULE = `must be a string of 1 to ${LONGEST_SEARCH} characters without control characters`;

export function isSearchText(text: string): boolean {
  const length = lengthOf(text);
  return length >= 1 && length <= LONGEST_SEARCH && isStorable(text) && !hasControlCharacter(text);
}
