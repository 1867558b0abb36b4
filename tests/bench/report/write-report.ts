import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { withTextInPlace } from '../../support/text-in-place.ts';
import type { BenchResult } from './bench-result.ts';
import { chartOf } from './chart.ts';
import { markdownOf } from './markdown.ts';

const PAGE = resolve(import.meta.dirname, '../../../docs/performance.md');

/** Writes `bench.json` (every round) and `bench.svg` (the plot), and `bench.md` (the tables) unless these are published in their place. */
export async function writeReport(result: BenchResult): Promise<void> {
  const { directory, isPublished } = result.options;
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'bench.json'), `${JSON.stringify(result, null, 1)}\n`);
  if (!isPublished) await writeFile(join(directory, 'bench.md'), markdownOf(result));
  await writeFile(join(directory, 'bench.svg'), `${chartOf(result)}\n`);
}

/** Puts the tables in their place in `docs/performance.md`. */
export async function publishTables(result: BenchResult): Promise<void> {
  const page = await readFile(PAGE, 'utf8');
  await writeFile(PAGE, withTextInPlace(page, 'bench', markdownOf(result)));
}
