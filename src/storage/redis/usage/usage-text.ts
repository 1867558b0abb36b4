import { setImmediate as nextTurn } from 'node:timers/promises';
import { type NameCaps, NO_CAPS, SliceTable } from '../../../usage/slice-table.ts';
import { addUnder, type Counts, emptySlice, noCounts, type UsageSlice } from '../../../usage/usage-slice.ts';

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
  let names = 0;
  const pause = async ({ endpoints, customers }: UsageSlice) => {
    names += endpoints.size + customers.size;
    if (names < NAMES_A_TURN) return;
    names = 0;
    await nextTurn();
  };
  for (const text of texts) {
    for (const slice of parseSlices(text)) {
      table.add(slice);
      await pause(slice);
    }
  }
  let compacted = '';
  for (const slice of table.slices) {
    compacted += textOfSlice(slice);
    await pause(slice);
  }
  return compacted;
}

/** About a millisecond of work. */
const NAMES_A_TURN = 1000;

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
  for (const text of texts) for (const slice of parseSlices(text)) table.add(slice);
  return table.slices;
}

function* parseSlices(text: string): Generator<UsageSlice> {
  // Slice by slice: the lines of a whole text may be many.
  for (let at = text.indexOf('\nk'); at !== -1; ) {
    const next = text.indexOf('\nk', at + 2);
    const [head = '', ...lines] = text.slice(at + 1, next === -1 ? undefined : next).split('\n');
    const slice = parseHead(head);
    for (const line of lines) addLine(slice, line);
    yield slice;
    at = next;
  }
}

function parseHead(line: string): UsageSlice {
  const [keyId = '', day, planId = '', lastUsedAtS] = line.slice(1).split('\t');
  return { ...emptySlice(keyId, Number(day), planId), lastUsedAtS: Number(lastUsedAtS) };
}

function addLine(slice: UsageSlice, line: string): void {
  const tab = line.indexOf('\t');
  const counts = parseCounts(line.slice(1, tab));
  const name = line.slice(tab + 1);
  if (line.startsWith('h')) addUnder(slice.hours, Number(name), counts);
  if (line.startsWith('e')) addUnder(slice.endpoints, name, counts);
  if (line.startsWith('c')) addUnder(slice.customers, name, counts);
}

function countsText(counts: Counts): string {
  let last = ORDER.length - 1;
  while (last > 0 && counts[ORDER[last] ?? 'requests'] === 0) last -= 1;
  let text = String(counts.requests);
  for (let index = 1; index <= last; index += 1) text += ` ${counts[ORDER[index] ?? 'requests']}`;
  return text;
}

function parseCounts(text: string): Counts {
  const counts = noCounts();
  text.split(' ').forEach((number, index) => {
    const name = ORDER[index];
    if (name !== undefined) counts[name] = Number(number);
  });
  return counts;
}
