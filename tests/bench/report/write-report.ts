import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BenchResult } from './bench-result.ts';
import { chartOf } from './chart.ts';
import { markdownOf } from './markdown.ts';

/** Writes `bench.json` (every round), `bench.md` (the tables) and `bench.svg` (the plot). */
export async function writeReport(directory: string, result: BenchResult): Promise<void> {
  await writeFile(join(directory, 'bench.json'), `${JSON.stringify(result, null, 1)}\n`);
  await writeFile(join(directory, 'bench.md'), markdownOf(result));
  await writeFile(join(directory, 'bench.svg'), `${chartOf(result)}\n`);
}
