import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { readScaleConstants } from '../../src/cli/sizing/scale-constants.ts';
import { type Demand, sizeInstallation } from '../../src/cli/sizing/size-installation.ts';
import { limitLine, sizeLines } from '../../src/cli/sizing/size-lines.ts';
import { withTextInPlace } from './text-in-place.ts';

export const SIZING_GUIDE = resolve(import.meta.dirname, '../../docs/sizing.md');

const USUAL = { customers: 1, endpoints: 5, months: 3, dailyMonths: 13, windows: 1 };

/** The three sizes of the page. */
export const EXAMPLES: Readonly<Record<string, Demand>> = {
  small: { ...USUAL, rps: 500, keys: 1000, activeKeys: 1000 },
  middle: { ...USUAL, rps: 5000, keys: 50_000, activeKeys: 50_000 },
  large: { ...USUAL, rps: 20_000, keys: 1_000_000, activeKeys: 1_000_000, months: 13 },
};

/** The page as it is, with what the constants say now in its marked places. Throws for a place that is missing. */
export async function sizingGuideWithFigures(): Promise<string> {
  let page = await readFile(SIZING_GUIDE, 'utf8');
  const parts = Object.entries({ constants: constantsTable(), ...mapValues(EXAMPLES, exampleText) });
  for (const [name, text] of parts) page = withTextInPlace(page, `sizing ${name}`, text);
  return page;
}

function constantsTable(): string {
  const rows = Object.entries(readScaleConstants()).map(([name, value]) => `| \`${name}\` | ${value} |`);
  return ['| constant | measured |', '|---|---|', ...rows].join('\n');
}

function exampleText(demand: Demand): string {
  const size = sizeInstallation(demand, readScaleConstants());
  const rows = sizeLines(size).map((line) => `| ${line.what} | ${line.size} |`);
  const limits = size.limits.map((limit) => `- ${limitLine(limit).trim()}`);
  return ['| what | size |', '|---|---|', ...rows, '', 'Limits, the nearest first:', '', ...limits].join(
    '\n',
  );
}

function mapValues<Value, Result>(
  record: Readonly<Record<string, Value>>,
  make: (value: Value) => Result,
): Readonly<Record<string, Result>> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, make(value)]));
}
