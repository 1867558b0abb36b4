import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { lineChart } from '../../support/line-chart.ts';
import { withTextInPlace } from '../../support/text-in-place.ts';
import type { Machine } from '../report/machine.ts';
import { decimal, table } from '../report/table.ts';
import type { Plot, RowResult, ScaleConstants, ScaleRow, Verdict } from './row.ts';
import type { ScaleSize } from './scale-world.ts';

const DOCS = resolve(import.meta.dirname, '../../../docs');
const COLOURS = ['#2f81f7', '#d97706'];

/** When and where a row was measured. */
export interface Occasion {
  readonly measuredAt: string;
  readonly tookSeconds: number;
  readonly machine: Machine;
  readonly size: ScaleSize;
}

/** What `docs/scale.json` holds: the constants of the sizing page. */
interface ScaleFile {
  readonly measuredAt: string;
  readonly cpu: string;
  readonly constants: Partial<ScaleConstants>;
}

/** A row as Markdown: its table, what became of its budgets, and where it was measured. */
export function markdownOfRow(
  { heads, rows, spread, verdicts, plots = [], notes = [] }: RowResult,
  { measuredAt, tookSeconds, machine, size }: Occasion,
): string {
  const { cpu, cores, memoryGb, kernel, node, loadAverage } = machine;
  const pair = spread === undefined ? '' : ` The A/A pair lay within ±${decimal(100 * spread)} %.`;
  return [
    table(heads, rows),
    ...notes,
    ...plots.map(({ name, title }) => `![${title}](scale/${name}.svg)`),
    table(['budget', 'measured', ''], verdicts.map(verdictCells)),
    `Measured ${measuredAt.slice(0, 16).replace('T', ' ')} UTC in ${Math.round(tookSeconds)} s on ${cores} cores of ${cpu}, ${memoryGb} GB, Linux ${kernel}, Node ${node}; load average ${decimal(loadAverage)}. ${size.rounds} rounds of ${size.seconds} s.${pair}`,
  ].join('\n\n');
}

function verdictCells({ budget, measured, holds }: Verdict): readonly string[] {
  return [budget, measured, holds === undefined ? 'not resolved' : holds ? 'holds' : '**missed**'];
}

/** A page with the text of a row in its place. Throws for a page that has no place for it. */
export function withRow(page: string, name: string, text: string): string {
  return withTextInPlace(page, `bench:scale ${name}`, text);
}

export function svgOf({ title, xName, xs, lines }: Plot): string {
  const coloured = Object.entries(lines).map(([name, data], index) => ({
    ...{ name, data, color: COLOURS[index % COLOURS.length] ?? '' },
  }));
  return lineChart({ title, xName, xs, lines: coloured });
}

/** Puts a row into `docs/scale.md`, its plots beside it and its constants into `docs/scale.json`. */
export async function publishRow(row: ScaleRow, result: RowResult, occasion: Occasion): Promise<void> {
  const page = join(DOCS, 'scale.md');
  await writeFile(page, withRow(await readFile(page, 'utf8'), row.name, markdownOfRow(result, occasion)));
  await mkdir(join(DOCS, 'scale'), { recursive: true });
  for (const plot of result.plots ?? [])
    await writeFile(join(DOCS, 'scale', `${plot.name}.svg`), `${svgOf(plot)}\n`);
  if (result.constants === undefined) return;
  const file = join(DOCS, 'scale.json');
  const { constants } = await readFile(file, 'utf8').then(
    (text) => JSON.parse(text) as ScaleFile,
    (): Pick<ScaleFile, 'constants'> => ({ constants: {} }),
  );
  const written: ScaleFile = {
    ...{ measuredAt: occasion.measuredAt, cpu: occasion.machine.cpu },
    constants: { ...constants, ...rounded(result.constants) },
  };
  await writeFile(file, `${JSON.stringify(written, null, 2)}\n`);
}

/** What could not be measured is left as it was. */
function rounded(constants: Partial<ScaleConstants>): Partial<ScaleConstants> {
  return Object.fromEntries(
    Object.entries(constants)
      .filter(([, value]) => Number.isFinite(value) && value > 0)
      .map(([name, value]) => [name, Number(value.toFixed(1))]),
  );
}
