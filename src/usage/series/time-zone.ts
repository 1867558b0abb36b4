const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** Names of the IANA database; not offsets like "+02:00", which Intl takes too. */
const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/;

/** Whether the name is a time zone of the IANA database, in any case. */
export function isTimeZone(name: string): boolean {
  if (!ZONE_NAME.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

/**
 * The calendar of a time zone. Instants are milliseconds since 1970. Dates are those of the proleptic Gregorian calendar, written as the
 * instant of their midnight in UTC.
 */
export class TimeZone {
  readonly name: string;
  readonly #format: Intl.DateTimeFormat | undefined;

  /** Throws a `RangeError` for a name that `isTimeZone` doesn't accept. */
  constructor(name: string) {
    this.name = name;
    const format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    // Intl resolves every name of UTC (Etc/UTC, GMT, Zulu) to this one, but not Europe/London, which has its time only in winter.
    if (format.resolvedOptions().timeZone !== 'UTC') this.#format = format;
  }

  /** Whether the zone is UTC, under any of its names. */
  get isUtc(): boolean {
    return this.#format === undefined;
  }

  /** The date that the zone has at an instant. */
  dateAt(instantMs: number): number {
    const localMs = instantMs + this.#offsetAt(instantMs);
    return localMs - (((localMs % DAY_MS) + DAY_MS) % DAY_MS);
  }

  /**
   * The first instant of a date. Where clocks skip midnight, the instant of the change; where they show it twice, the first of the two.
   */
  startOf(date: number): number {
    const before = this.#offsetAt(date - DAY_MS);
    const after = this.#offsetAt(date + DAY_MS);
    if (before === after) return date - before;
    const candidates = [date - before, date - after].toSorted((a, b) => a - b);
    // If neither shows midnight, clocks skip it: until that change they have the offset `before`.
    return candidates.find((instant) => instant + this.#offsetAt(instant) === date) ?? date - before;
  }

  #offsetAt(instantMs: number): number {
    if (this.#format === undefined) return 0;
    const part: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
    const wholeSecond = Math.floor(instantMs / 1000) * 1000;
    for (const { type, value } of this.#format.formatToParts(wholeSecond)) part[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
    return Date.UTC(year, month - 1, day, hour, minute, second) - wholeSecond;
  }
}

/** Milliseconds since 1970, rounded down to a whole hour. */
export function floorToHour(instantMs: number): number {
  return Math.floor(instantMs / HOUR_MS) * HOUR_MS;
}

/** Milliseconds since 1970, rounded up to a whole hour. */
export function ceilToHour(instantMs: number): number {
  return Math.ceil(instantMs / HOUR_MS) * HOUR_MS;
}
