import { type BenchResult, medianOf, noiseOf, type RoundNumber, ratioOf } from './bench-result.ts';
import { decimal, factor, table } from './table.ts';

/** This checkout as a multiple of the one that `--against` names; undefined where none takes part. */
export function againstTable({ cases, options, garbage, garbageBefore }: BenchResult): string | undefined {
  if (options.against === undefined) return undefined;
  const rows = cases.map((one) => {
    const ratio = (number: RoundNumber) => {
      const found = ratioOf(one, ['tollgate', 'tollgate-before'], number);
      return found === undefined ? '–' : factor(found);
    };
    const both = (name: 'tollgate' | 'tollgate-before') => [
      decimal(one.events[name]?.syscalls ?? Number.NaN),
      decimal(medianOf(one, name, 'redisCalls'), 2),
      decimal(medianOf(one, name, 'redisCommands'), 2),
    ];
    const [before, now] = [both('tollgate-before'), both('tollgate')];
    return [
      one.benchCase.title,
      ratio('cpuUs'),
      ratio('redisCpuUs'),
      ratio('p50Ms'),
      ratio('p99Ms'),
      ...now.map((number, index) => `${before[index]} → ${number}`),
      `±${decimal(100 * (noiseOf(one) ?? Number.NaN), 0)} %`,
    ];
  });
  const heads = ['case', 'CPU ×', 'Redis CPU ×', 'p50 ×', 'p99 ×', 'syscalls'].concat([
    'Redis calls',
    'Redis commands',
    'A/A',
  ]);
  const kilobytes = ({ bytesPerRequest }: { readonly bytesPerRequest: number }) =>
    `${decimal(bytesPerRequest / 1024)} kB`;
  const heap =
    garbage && garbageBefore
      ? `\n\nJavaScript heap allocated per request: ${kilobytes(garbageBefore)} → ${kilobytes(garbage)}.`
      : '';
  return `This checkout against \`${options.against}\`, ratios within rounds:\n\n${table(heads, rows)}${heap}`;
}
