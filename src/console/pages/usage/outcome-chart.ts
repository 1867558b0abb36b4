import { type Outcomes, sumOf } from '../../api/outcome-counts.ts';
import type { UsageSeries } from '../../api/read-usage-series.ts';
import type { ChartData, ChartSeries } from '../../components/charts/chart-data.ts';
import { counted, formatNumber } from '../../format/numbers.ts';
import { bucketsOf, type Interval } from './buckets.ts';

/** The outcomes of a series as a chart, and their sum. */
export function outcomeChart(
  series: UsageSeries,
  interval: Interval,
): { readonly data: ChartData; readonly total: Outcomes } {
  const { starts, outcomes } = bucketsOf(series, interval);
  const data: ChartData = {
    starts,
    series: outcomeSeries(outcomes),
    completeUntil: Date.parse(series.completeUntil),
    labels: interval === 'hour' ? 'time' : 'date',
  };
  return { data, total: sumOf(outcomes) };
}

/** The three outcomes as stacked series. */
export function outcomeSeries(outcomes: readonly Outcomes[]): readonly ChartSeries[] {
  return [
    { name: 'Allowed', tone: 'allowed', values: outcomes.map(({ allowed }) => allowed) },
    { name: 'Limited', tone: 'limited', values: outcomes.map(({ limited }) => limited) },
    { name: 'Failed', tone: 'failed', values: outcomes.map(({ failed }) => failed) },
  ];
}

/** "4,120 requests in 24 hours: 312 limited, 8 failed." */
export function outcomeSentence({ requests, limited, failed }: Outcomes, when: string): string {
  if (requests === 0) return `No requests ${when}.`;
  return `${counted(requests, 'request')} ${when}: ${formatNumber(limited)} limited, ${formatNumber(failed)} failed.`;
}
