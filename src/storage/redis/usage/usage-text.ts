import { setImmediate as nextTurn } from 'node:timers/promises';
import { type NameCaps, NO_CAPS, SliceTable } from '../../../usage/slice-table.ts';
import { addCapped, addUnder, type Counts, noCounts, type UsageSlice } from '../../../usage/usage-slice.ts';

/** The order of a text's numbers: the rare ones last, because zeros at the end are left out. */
const ORDER = [
  'requests',
  'successful',
  'forwarded',
  'forwardedUs',
  'bytesOut',
  'bytesIn',
  'rateLimited',
  'clientErrors',
  'serverErrors',
  'shadowLimited',
] as const satisfies readonly (keyof Counts)[];

/**
 * Slices as Redis keeps them, line by line: "k" key, day, plan and last use, and below it for each hour "h", each endpoint "e" and
 * each customer "c" the counts and the name. Tabs separate, and neither they nor line breaks are in any name.
 */
export function textOfSlices(slices: readonly UsageSlice[]): string {
  let text = '';
  for (const slice of slices) text += textOfSlice(slice);
  return text;
}

/**
 * One text with the sums of some texts. Long ones, as clients that invent names make them, take a while: requests are served in between.
 */
export async function compactTexts(texts: readonly string[], caps: NameCaps): Promise<string> {
  const table = new SliceTable(caps);
  let lines = 0;
  const pauseAfter = async (more: number) => {
    lines += more;
    if (lines < LINES_A_TURN) return;
    lines = 0;
    await nextTurn();
  };
  for (const text of texts) for (const read of addText(table, text)) await pauseAfter(read);
  let compacted = '';
  for (const slice of table.slices) {
    compacted += textOfSlice(slice);
    await pauseAfter(slice.endpoints.size + slice.customers.size);
  }
  return compacted;
}

/** About a millisecond of work. */
const LINES_A_TURN = 1000;

function textOfSlice({ keyId, day, planId, lastUsedAtS, hours, endpoints, customers }: UsageSlice): string {
  let text = `\nk${keyId}\t${day}\t${planId}\t${lastUsedAtS}`;
  for (const [hour, counts] of hours) text += `\nh${countsText(counts)}\t${hour}`;
  for (const [name, counts] of endpoints) text += `\ne${countsText(counts)}\t${name}`;
  for (const [name, counts] of customers) text += `\nc${countsText(counts)}\t${name}`;
  return text;
}

/** The sums of what the texts hold, names in the order in which they came. Lines of another version of the program are left out. */
export function slicesOfTexts(texts: readonly string[]): readonly UsageSlice[] {
  const table = new SliceTable(NO_CAPS);
  for (const text of texts) addText(table, text).forEach(() => {});
  return table.slices;
}

/** Adds the lines of a text as they are read: copies of slices would cost more than the reading. Yields the number of lines of each slice. */
function* addText(table: SliceTable, text: string): Generator<number> {
  let slice: UsageSlice | undefined;
  let lines = 0;
  for (let from = 1; from > 0; ) {
    const newline = text.indexOf('\n', from);
    const line = text.slice(from, newline === -1 ? undefined : newline);
    if (line.startsWith('k')) {
      yield lines;
      lines = 0;
      slice = sliceOfHead(table, line);
    } else if (slice !== undefined) {
      addLine(table, slice, line);
      lines += 1;
    }
    from = newline + 1;
  }
  yield lines;
}

function sliceOfHead(table: SliceTable, line: string): UsageSlice {
  const [keyId = '', day, planId = '', lastUsedAtS] = line.slice(1).split('\t');
  const slice = table.sliceOf(keyId, Number(day), planId);
  slice.lastUsedAtS = Math.max(slice.lastUsedAtS, Number(lastUsedAtS));
  return slice;
}

function addLine({ caps }: SliceTable, slice: UsageSlice, line: string): void {
  const tab = line.indexOf('\t');
  const counts = parseCounts(line, tab);
  const name = line.slice(tab + 1);
  if (line.startsWith('h')) addUnder(slice.hours, Number(name), counts);
  if (line.startsWith('e')) addCapped(slice.endpoints, name, counts, caps.endpoints);
  if (line.startsWith('c')) addCapped(slice.customers, name, counts, caps.customers);
}

function countsText(counts: Counts): string {
  let last = ORDER.length - 1;
  while (last > 0 && counts[ORDER[last] ?? 'requests'] === 0) last -= 1;
  let text = String(counts.requests);
  for (let index = 1; index <= last; index += 1) text += ` ${counts[ORDER[index] ?? 'requests']}`;
  return text;
}

/** The numbers of a line, from its second character to `end`. */
function parseCounts(line: string, end: number): Counts {
  const counts = noCounts();
  let number = 0;
  let index = 0;
  for (let at = 1; at <= end; at += 1) {
    const digit = line.charCodeAt(at) - DIGIT_0;
    if (digit >= 0) number = number * 10 + digit;
    else {
      const name = ORDER[index];
      // A later version of the program may write more numbers.
      if (name !== undefined) counts[name] = number;
      number = 0;
      index += 1;
    }
  }
  return counts;
}

const DIGIT_0 = 48;
