import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { CandidateName } from '../setup/candidate.ts';
import { type BenchResult, medianOf, type RoundNumber, ratioOf } from './bench-result.ts';
import { decimal, factor } from './table.ts';
import { residentMegabytes, throughputOfTwoToOne } from './workers-table.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
/** The published run, of which all figures are taken. */
const RESULT = resolve(ROOT, 'docs/performance/bench.json');
/** The pages with figures. */
export const PAGES = ['README.md', 'docs/comparison.md', 'docs/performance.md', 'docs/runbook.md'] as const;
/** A figure in a sentence: `<!-- figure cpu-nginx -->1.42<!-- /figure -->`. */
const MARKER = /(<!-- figure ([\w-]+) -->)(.*?)(<!-- \/figure -->)/g;

const OURS: readonly CandidateName[] = ['tollgate', 'tollgate-again'];

/** The figures by name, as the documents show them. */
export const FIGURES: Readonly<Record<string, (result: BenchResult) => string>> = {
  'measured-on': ({ measuredAt }) => measuredAt.slice(0, 10),
  'cpu-nginx': (result) => ratioText(result, 'allowed', ['tollgate', 'nginx-lua']),
  'cpu-express': (result) => ratioText(result, 'allowed', ['tollgate', 'express']),
  'cpu-us': (result) => rangeText(result, 'allowed', 'cpuUs'),
  'cpu-us-many-keys': (result) => rangeText(result, 'many-keys', 'cpuUs'),
  'redis-us': (result) => rangeText(result, 'allowed', 'redisCpuUs'),
  'redis-us-many-keys': (result) => rangeText(result, 'many-keys', 'redisCpuUs'),
  'redis-us-one-connection': (result) => rangeText(result, 'one-connection', 'redisCpuUs'),
  'nginx-redis-us-one-connection': (result) =>
    decimal(medianOf(caseOf(result, 'one-connection'), 'nginx-lua', 'redisCpuUs'), 0),
  'p99-one-connection': (result) =>
    OURS.map((name) => ratioText(result, 'one-connection', [name, 'nginx-lua'], 'p99Ms')).join(' and '),
  'second-worker': ({ workers }) => factor(throughputOfTwoToOne(measured(workers))),
  'rss-two-workers': ({ workers }) => residentMegabytes(measured(workers), 2),
  'first-start-s': ({ startUp }) => decimal(measured(startUp).firstMs / 1000, 2),
};

/** The page with each figure as the result has it. Throws for a marker that is no figure, and for a figure that was not measured. */
export function withFigures(page: string, result: BenchResult): string {
  return page.replace(MARKER, (_, begin: string, name: string, _text: string, end: string) => {
    const figure = FIGURES[name];
    if (figure === undefined) throw new Error(`No figure is called ${name}.`);
    return `${begin}${figure(result)}${end}`;
  });
}

/** Names of the figures in a page. */
export function figuresIn(page: string): readonly string[] {
  return [...page.matchAll(MARKER)].map(([, , name = '']) => name);
}

export async function publishedResult(): Promise<BenchResult> {
  return JSON.parse(await readFile(RESULT, 'utf8')) as BenchResult;
}

/** Puts the figures into their places in the documents. */
export async function publishFigures(result: BenchResult): Promise<void> {
  for (const page of PAGES) {
    const path = resolve(ROOT, page);
    await writeFile(path, withFigures(await readFile(path, 'utf8'), result));
  }
}

function measured<Part>(part: Part | undefined): Part {
  if (part === undefined) throw new Error('The run was of some cases only.');
  return part;
}

function ratioText(
  result: BenchResult,
  caseId: string,
  pair: readonly [CandidateName, CandidateName],
  number?: RoundNumber,
): string {
  const ratio = ratioOf(caseOf(result, caseId), pair, number);
  if (ratio === undefined) throw new Error(`The run has no ${pair.join(' and ')} in ${caseId}.`);
  return decimal(ratio.median, 2);
}

/** Of the two runs of the A/A pair: `42 to 46`. */
function rangeText(result: BenchResult, caseId: string, number: RoundNumber): string {
  const [low = Number.NaN, high = Number.NaN] = OURS.map((name) =>
    medianOf(caseOf(result, caseId), name, number),
  ).toSorted((a, b) => a - b);
  const texts = [decimal(low, 0), decimal(high, 0)];
  return [...new Set(texts)].join(' to ');
}

function caseOf({ cases }: BenchResult, caseId: string) {
  const found = cases.find(({ benchCase }) => benchCase.id === caseId);
  if (found === undefined) throw new Error(`The run has no case ${caseId}.`);
  return found;
}
