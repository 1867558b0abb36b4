import { CONNECTIONS } from '../load/run-load.ts';
import type { CaseResult } from '../measure/run-cases.ts';
import { CANDIDATE_TITLES, CANDIDATES, type CandidateName } from '../setup/candidate.ts';
import { againstTable } from './against-table.ts';
import { type BenchResult, medianOf, noiseOf, ratioOf } from './bench-result.ts';
import { decisionsTable } from './decisions-table.ts';
import { decimal, factor, table } from './table.ts';
import { workersTable } from './workers-table.ts';

/** The result as the one table of `docs/performance.md`, with what belongs under it. */
export function markdownOf(result: BenchResult): string {
  const parts = [
    ...[
      heading,
      caseTable,
      thresholdsLine,
      againstTable,
      workersTable,
      decisionsTable,
      latencyTable,
      processNumbers,
    ],
  ].map((part) => part(result));
  return `${parts.filter((part) => part !== undefined).join('\n\n')}\n`;
}

function heading({ measuredAt, machine, options, tookSeconds }: BenchResult): string {
  const { cpu, cores, memoryGb, kernel, node, nginx, loadAverage } = machine;
  return `Measured ${measuredAt.slice(0, 16).replace('T', ' ')} UTC in ${Math.round(tookSeconds / 60)} min on ${cores} cores of ${cpu}, ${memoryGb} GB, Linux ${kernel}, Node ${node}, nginx ${nginx}; load average ${loadAverage.toFixed(1)}.
One core for the gateway, the rest for the load, the backend and the stores: wrk with ${CONNECTIONS} keep-alive connections where a case does not say otherwise. ${options.rounds} rounds of ${options.seconds} s for each case, twice as many for the first.`;
}

const HEADS = ['case', 'gateway', 'CPU µs', '× nginx', '× Express', 'req/s', 'syscalls', '10³ instr.'].concat(
  ['Redis calls', 'Redis commands', 'Redis CPU µs', 'backend conn. per 10⁴', 'RSS MB'],
  ['p50 ms', 'p99 ms', 'p99.9 ms', 'void'],
);

function caseTable({ cases }: BenchResult): string {
  const rows = cases.flatMap((one) =>
    CANDIDATES.filter((name) => one.rounds.some(({ candidate }) => candidate === name)).map((name, index) =>
      caseRow(one, name, index === 0),
    ),
  );
  const noise = cases.flatMap((one) => {
    const share = noiseOf(one);
    return share === undefined ? [] : [`${one.benchCase.title} ±${(100 * share).toFixed(1)} %`];
  });
  return `${table(HEADS, rows)}

All per request unless said otherwise; ratios are medians over rounds, with the quartiles. The A/A pair's ratio lay within: ${noise.join('; ')}. An effect below twice that is not resolved.`;
}

/** What watching thresholds costs; undefined where the main case was not measured. */
function thresholdsLine({ cases }: BenchResult): string | undefined {
  for (const one of cases) {
    const found = ratioOf(one, ['tollgate', 'tollgate-unwatched']);
    if (found === undefined) continue;
    const { median, low, high } = found;
    return `With \`EVENTS_THRESHOLDS\` as by default, a request takes ${decimal(median, 3)} times (${decimal(low, 3)}–${decimal(high, 3)}) the CPU time that it takes with none.`;
  }
  return undefined;
}

function caseRow(result: CaseResult, name: CandidateName, isFirst: boolean): readonly string[] {
  const number = (field: Parameters<typeof medianOf>[2]) => medianOf(result, name, field);
  const events = result.events[name];
  const faults = result.rounds.filter(({ candidate, fault }) => candidate === name && fault !== undefined);
  return [
    isFirst ? result.benchCase.title : '',
    CANDIDATE_TITLES[name],
    decimal(number('cpuUs')),
    ratio(result, name, 'nginx-lua'),
    ratio(result, name, 'express'),
    decimal(number('requestsPerSecond'), 0),
    decimal(events?.syscalls ?? Number.NaN),
    decimal((events?.instructions ?? Number.NaN) / 1000),
    decimal(number('redisCalls'), 2),
    decimal(number('redisCommands'), 2),
    decimal(number('redisCpuUs')),
    decimal(number('backendConnections')),
    decimal(number('residentBytes') / 2 ** 20, 0),
    decimal(number('p50Ms'), 2),
    decimal(number('p99Ms'), 2),
    decimal(number('p999Ms'), 2),
    String(faults.length),
  ];
}

function ratio(result: CaseResult, name: CandidateName, yardstick: CandidateName): string {
  if (name === yardstick) return '1';
  const found = ratioOf(result, [name, yardstick]);
  if (found === undefined) return '–';
  const text = factor(found);
  const noise = noiseOf(result);
  return noise !== undefined && Math.abs(found.median - 1) < 2 * noise ? `${text}, not resolved` : text;
}

function latencyTable({ latencies }: BenchResult): string {
  const rows = CANDIDATES.flatMap((name) => {
    const one = latencies.find(({ candidate }) => candidate === name);
    if (one === undefined) return [];
    const { oneConnection, halfLoad } = one;
    return [
      [
        CANDIDATE_TITLES[name],
        decimal(oneConnection.p50Ms, 2),
        decimal(oneConnection.p99Ms, 2),
        decimal(halfLoad.requestsPerSecond, 0),
        decimal(halfLoad.p50Ms, 2),
        decimal(halfLoad.p99Ms, 2),
      ],
    ];
  });
  const heads = [
    '100 keys, allowed',
    'one connection: p50 ms',
    'p99 ms',
    'half load: req/s',
    'p50 ms',
    'p99 ms',
  ];
  return table(heads, rows);
}

function processNumbers({ garbage, memory, startUp }: BenchResult): string {
  const megabytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MB`;
  const rows: string[][] = [];
  if (memory !== undefined) {
    const { idle, beforeKeys, start, middle, end, requests } = memory;
    rows.push(
      ['RSS of an idle replica', megabytes(idle)],
      [
        `RSS with 10 000 keys: start, middle and end of ${requests} requests`,
        [start, middle, end].map(megabytes).join(', '),
      ],
      ['RSS per 10 000 cached keys', megabytes(start - beforeKeys)],
    );
  }
  if (startUp !== undefined) {
    const seconds = [startUp.firstMs, startUp.laterMs].map((ms) => `${(ms / 1000).toFixed(2)} s`);
    rows.push(['`npm start` to ready, real stores: first start, later ones', seconds.join(', ')]);
  }
  if (garbage !== undefined)
    rows.push(
      ['JavaScript heap allocated per request', `${(garbage.bytesPerRequest / 1024).toFixed(1)} kB`],
      ['Collections per 10 000 requests', decimal(garbage.collections)],
      ['Pauses for collections per 10 000 requests', `${decimal(garbage.pauseMs)} ms`],
    );
  return table(['Tollgate', ''], rows);
}
