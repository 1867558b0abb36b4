import type { Outcomes } from '../../api/outcome-counts.ts';
import type { ChartSeries } from '../../components/charts/chart-data.ts';
import { counted, formatNumber } from '../../format/numbers.ts';

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
