import { setImmediate as nextTurn } from 'node:timers/promises';
import { LAST_INSTANT_MS } from '../../../platform/timestamps.ts';
import { type NameCaps, NO_CAPS, SliceTable, type TableSlice } from '../../../usage/slice-table.ts';
import {
  addUnder,
  type Counts,
  HOURS_A_DAY,
  type RecordedUsage,
  type UniformUsage,
  type UsageSlice,
} from '../../../usage/usage-slice.ts';

/**
 * Recorded usage in the text format of Redis. A slice begins with a line of "k" and key, day, plan and last use. Lines with counts and a
 * name follow: "h" for each hour, "e" for each endpoint, "c" for each customer. A slice with one of each is a single line: "k" as above,
 * then hour, counts, endpoint and customer. Tabs separate the fields; no name has a tab or a line break.
 */
export function textOf(recorded: readonly RecordedUsage[]): string {
  let text = '';
  for (const each of recorded) text += 'counts' in each ? textOfUniform(each) : textOfSlice(each);
  return text;
}

/**
 * One text with the sums of some texts. Long texts, which clients that invent names cause, take a while: requests are served in between.
 */
export async function compactTexts(texts: readonly string[], caps: NameCaps): Promise<string> {
  const table = new SliceTable(caps);
  for (const _ of addTexts(table, texts)) await nextTurn();
  let compacted = '';
  let lines = 0;
  for (const slice of table.slices) {
    compacted += textOfSlice(slice);
    lines += slice.endpoints.size + slice.customers.size;
    if (lines < LINES_A_TURN) continue;
    lines = 0;
    await nextTurn();
  }
  return compacted;
}

/**
 * The sums of the texts, with names in the order in which they first came. Lines of a kind that this version does not know are skipped, and
 * so are those of a day or an hour that no store has: one would hold up all usage of its shard.
 */
export function slicesOfTexts(texts: readonly string[]): readonly UsageSlice[] {
  const table = new SliceTable(NO_CAPS);
  // Runs to the end without the pauses of `compactTexts`.
  for (const _ of addTexts(table, texts));
  return table.slices.filter(({ day }) => isUpTo(LAST_HOUR / HOURS_A_DAY, day));
}

/** About a millisecond of work. */
const LINES_A_TURN = 1000;

function textOfUniform(uniform: UniformUsage): string {
  const { keyId, hour, planId, endpoint, customerId, counts, lastUsedAtS } = uniform;
  const day = Math.floor(hour / HOURS_A_DAY);
  return `\nk${keyId}\t${day}\t${planId}\t${lastUsedAtS}\t${hour}\t${countsText(counts)}\t${endpoint}\t${customerId}`;
}

function textOfSlice({ keyId, day, planId, lastUsedAtS, hours, endpoints, customers }: UsageSlice): string {
  let text = `\nk${keyId}\t${day}\t${planId}\t${lastUsedAtS}`;
  for (const [hour, counts] of hours) text += `\nh${countsText(counts)}\t${hour}`;
  for (const [name, counts] of endpoints) text += `\ne${countsText(counts)}\t${name}`;
  for (const [name, counts] of customers) text += `\nc${countsText(counts)}\t${name}`;
  return text;
}

/** Adds the lines without copying them: copies would cost more than the parsing. Yields after each thousand lines. */
function* addTexts(table: SliceTable, texts: readonly string[]): Generator<void> {
  let lines = 0;
  for (const text of texts) {
    let to: TableSlice | undefined;
    for (let from = 1; from > 0; ) {
      const newline = text.indexOf('\n', from);
      const end = newline === -1 ? text.length : newline;
      if (text.charCodeAt(from) === HEAD) to = addHead(table, text, from + 1, end);
      else if (to !== undefined) addLine(table, to, text, from, end);
      from = newline + 1;
      lines += 1;
      if (lines % LINES_A_TURN === 0) yield;
    }
  }
}

/** The slice that a "k" line begins. Counts in the same line are added to it; undefined if their hour can't be. */
function addHead(table: SliceTable, text: string, from: number, end: number): TableSlice | undefined {
  const afterId = text.indexOf('\t', text.indexOf('\t', text.indexOf('\t', from) + 1) + 1);
  const lastUsedAtS = Math.min(new Numbers(text, afterId + 1).next(), LAST_HOUR * HOUR_S);
  const id = text.slice(from, afterId);
  const afterLastUse = text.indexOf('\t', afterId + 1);
  if (afterLastUse === -1 || afterLastUse > end)
    return table.sliceOf(id, onlyHourAfter(text, end), lastUsedAtS);
  const hour = new Numbers(text, afterLastUse + 1).next();
  if (!isUpTo(LAST_HOUR, hour)) return undefined;
  const to = table.sliceOf(id, hour, lastUsedAtS);
  const afterHour = text.indexOf('\t', afterLastUse + 1);
  const afterCounts = text.indexOf('\t', afterHour + 1);
  const afterEndpoint = text.indexOf('\t', afterCounts + 1);
  table.addUniform(to, {
    hour,
    counts: new Numbers(text, afterHour + 1).counts(),
    endpoint: text.slice(afterCounts + 1, afterEndpoint),
    customerId: text.slice(afterEndpoint + 1, end),
  });
  return to;
}

/** The hour of the "h" line at `newline`; undefined if another one follows, or there is none. */
function onlyHourAfter(text: string, newline: number): number | undefined {
  if (text[newline + 1] !== 'h') return undefined;
  const next = text.indexOf('\n', newline + 1);
  if (next !== -1 && text[next + 1] === 'h') return undefined;
  return new Numbers(text, text.indexOf('\t', newline) + 1).next();
}

// Positional parameters, as in `addHead`: an object for each line would be garbage by the thousand.
function addLine(table: SliceTable, to: TableSlice, text: string, from: number, end: number): void {
  const counts = new Numbers(text, from + 1).counts();
  const name = text.slice(text.indexOf('\t', from) + 1, end);
  const kind = text[from];
  if (kind === 'h' && isUpTo(LAST_HOUR, Number(name))) addUnder(to.slice.hours, Number(name), counts);
  if (kind === 'e') table.addNamed(to, 'endpoints', name, counts);
  if (kind === 'c') table.addNamed(to, 'customers', name, counts);
}

/**
 * The rare ones last, because zeros at the end are left out. The last one is one more than the units, and is left out where each allowed
 * request has the usual cost of 1, or a version that knows no units has written the line.
 */
function countsText(counts: Counts): string {
  const { requests, successful, forwarded, forwardedUs, bytesOut, bytesIn } = counts;
  const { rateLimited, clientErrors, serverErrors, shadowLimited } = counts;
  const units = counts.units === requests - rateLimited ? 0 : Math.min(counts.units, MOST_UNITS) + 1;
  const usual = `${requests} ${successful} ${forwarded} ${forwardedUs} ${bytesOut}`;
  if (bytesIn + rateLimited + clientErrors + serverErrors + shadowLimited + units === 0) return usual;
  const rare = `${usual} ${bytesIn} ${rateLimited} ${clientErrors} ${serverErrors} ${shadowLimited}`;
  return units === 0 ? rare : `${rare} ${units}`;
}

/** Reads numbers separated by blanks, up to any other character. */
class Numbers {
  readonly #text: string;
  #at: number;

  constructor(text: string, at: number) {
    this.#text = text;
    this.#at = at;
  }

  /** The next number, at most `MOST`; 0 after the last one. */
  next(): number {
    let number = 0;
    for (;;) {
      const digit = this.#text.charCodeAt(this.#at) - DIGIT_0;
      if (!(digit >= 0 && digit <= 9)) break;
      number = number * 10 + digit;
      this.#at += 1;
    }
    if (this.#text.charCodeAt(this.#at) === BLANK) this.#at += 1;
    return Math.min(number, MOST);
  }

  /** In the order of `countsText`; a later version of the program may have written more. */
  counts(): Counts {
    const counts = {
      requests: this.next(),
      successful: this.next(),
      forwarded: this.next(),
      forwardedUs: this.next(),
      bytesOut: this.next(),
      bytesIn: this.next(),
      rateLimited: this.next(),
      clientErrors: this.next(),
      serverErrors: this.next(),
      shadowLimited: this.next(),
    };
    const units = this.next();
    return { ...counts, units: units === 0 ? counts.requests - counts.rateLimited : units - 1 };
  }
}

/** Whether a number of days or hours since 1970 is one, and not after the last. */
function isUpTo(last: number, number: number): boolean {
  return Number.isInteger(number) && number >= 0 && number <= last;
}

/** Of a line: sums are whole numbers, which a backend that reports huge costs could exceed. */
const MOST_UNITS = 1e15;
/** Numbers are exact up to here. No request has higher ones: they were written to Redis by another program. */
const MOST = Number.MAX_SAFE_INTEGER;
/** The last hour of the year 9999: later instants have a form that Postgres does not read. */
const LAST_HOUR = Math.floor(LAST_INSTANT_MS / 3_600_000);
const HOUR_S = 3600;
const HEAD = 'k'.charCodeAt(0);
const DIGIT_0 = '0'.charCodeAt(0);
const BLANK = ' '.charCodeAt(0);
