const SECOND_MS = 1000;
/** The end of the year 9999: later instants have no form that every reader of RFC 3339 knows. */
export const LAST_INSTANT_MS = Date.UTC(10_000, 0) - 1;

/**
 * `YYYY-MM-DDThh:mm:ssZ`: the whole second of the instant (milliseconds since 1970). An instant after `LAST_INSTANT_MS`,
 * which a store may have, is written as that one.
 */
export function isoSeconds(ms: number): string {
  return `${new Date(Math.min(ms, LAST_INSTANT_MS)).toISOString().slice(0, -'.000Z'.length)}Z`;
}

/** The same; null where there is no instant. */
export function isoSecondsOrNull(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : isoSeconds(ms);
}

/**
 * `YYYY-MM-DDThh:mm:ssZ`, rounded up to a whole second: for resets, because a client that comes back at the instant shown must
 * find the new window open.
 */
export function isoSecondsUp(ms: number): string {
  return isoSeconds(wholeSecondUp(ms));
}

/** For what ends: responses show whole seconds, and it must not end before the instant that they show. */
export function wholeSecondUp(ms: number): number {
  return Math.ceil(ms / SECOND_MS) * SECOND_MS;
}

/** `YYYY-MM-DD HH:MM:SS` in UTC: the form of the create response. */
export function sqlSeconds(ms: number): string {
  return isoSeconds(ms).slice(0, -1).replace('T', ' ');
}

/** The form that `parseIsoUtc` accepts, if the day and time exist: an instant of UTC, with or without a fraction. */
export const ISO_UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|\+00:00)$/;

/**
 * Reads `YYYY-MM-DDThh:mm:ss[.fraction]Z` as milliseconds since 1970, truncated to the whole second, as `isoSeconds` shows
 * it. `+00:00`, which many libraries write, stands for `Z`. Undefined for anything else, also for a day that the calendar doesn't have.
 */
export function parseIsoUtc(text: string): number | undefined {
  if (!ISO_UTC.test(text)) return undefined;
  const wholeSeconds = `${text.slice(0, 'YYYY-MM-DDThh:mm:ss'.length)}Z`;
  const ms = Date.parse(wholeSeconds);
  // Date.parse rolls February 30 over into March, and hour 24 into the next day.
  return Number.isNaN(ms) || isoSeconds(ms) !== wholeSeconds ? undefined : ms;
}

/** Why a text is not an instant of UTC, as the end of a sentence about it; undefined if it is one. */
export function isoUtcFault(text: string): string | undefined {
  if (parseIsoUtc(text) !== undefined) return undefined;
  if (ISO_UTC.test(text)) return 'there is no such day or time';
  if (/^[\d-]*T[\d:.]*[+-]\d{2}(?::?\d{2})?$/.test(text)) return 'it has an offset: convert it to UTC';
  if (/^\d{4}-\d{2}-\d{2}$/.test(text)) return 'it has no time of day';
  if (/^[\d-]*T[\d:.]+$/.test(text)) return 'it does not end with Z';
  return 'it has another form';
}
