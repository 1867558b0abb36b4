import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type BenchResult, medianOf } from '../bench/report/bench-result.ts';

const BENCH = resolve(import.meta.dirname, '../../docs/performance/bench.json');

const REQUESTS_A_SECOND = 1_000_000;
const REGIONS = 3;
/** The part of a core that is used on average, so that a zone may fail and load may peak. */
const USED = 0.5;
/** What 1 000 000 requests a second take, from what `npm run bench` measured, as Markdown. */
export async function arithmetic(): Promise<string> {
  const result = JSON.parse(await readFile(BENCH, 'utf8')) as BenchResult;
  const busy = result.cases.find(({ benchCase }) => benchCase.id === 'many-keys');
  if (busy === undefined) throw new Error('docs/performance/bench.json has no case many-keys');
  const cpuUs = medianOf(busy, 'tollgate', 'cpuUs');
  const redisUs = medianOf(busy, 'tollgate', 'redisCpuUs');
  const perRegion = REQUESTS_A_SECOND / REGIONS;
  const gatewayCores = (perRegion * cpuUs) / 1e6;
  const redisCores = (perRegion * redisUs) / 1e6;
  const row = (what: string, how: string, value: string) => `| ${what} | ${how} | ${value} |`;
  return [
    `Measured ${result.measuredAt.slice(0, 10)} with 10 000 keys: ${cpuUs.toFixed(1)} µs of the gateway and ${redisUs.toFixed(1)} µs of one Redis a request.`,
    '',
    '| in each of three regions | how | |',
    '|---|---|---|',
    row('requests a second', '1 000 000 ÷ 3', Math.round(perRegion).toString()),
    row('cores of the gateway in use', `× ${cpuUs.toFixed(1)} µs`, gatewayCores.toFixed(1)),
    row('replicas of two cores', `÷ ${USED} ÷ 2`, String(Math.ceil(gatewayCores / USED / 2))),
    row('cores of Redis in use', `× ${redisUs.toFixed(1)} µs`, redisCores.toFixed(1)),
    row('masters of its cluster, at least', `÷ ${USED}`, String(Math.ceil(redisCores / USED))),
  ].join('\n');
}
