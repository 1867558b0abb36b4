import { useMemo } from 'react';
import { sumOf } from '../../api/outcome-counts.ts';
import type { UsageSeries } from '../../api/read-usage-series.ts';
import { Chart } from '../../components/charts/chart.tsx';
import type { ChartData } from '../../components/charts/chart-data.ts';
import { EmptyState } from '../../components/states/empty-state.tsx';
import { formatNumber } from '../../format/numbers.ts';
import { bucketsOf } from './buckets.ts';
import { outcomeSentence, outcomeSeries } from './outcome-chart.ts';
import { OutcomeFigures } from './outcome-figures.tsx';
import { RANGES, type UsageView } from './usage-view.ts';

interface UsageChartProps {
  readonly series: UsageSeries;
  /** The series of the previous period, for the comparison. */
  readonly before: UsageSeries | undefined;
  readonly view: UsageView;
}

/** The figures of a span, and its buckets as a chart. */
export function UsageChart({ series, before, view }: UsageChartProps) {
  const { interval } = view;
  const { starts, outcomes } = useMemo(() => bucketsOf(series, interval), [series, interval]);
  const outcomesBefore = useMemo(
    () => (before === undefined ? undefined : bucketsOf(before, interval).outcomes),
    [before, interval],
  );
  const data = useMemo((): ChartData => {
    const dashed = outcomesBefore && {
      name: 'All, the time before',
      tone: 'before' as const,
      values: starts.map((_, index) => outcomesBefore[index]?.requests ?? null),
    };
    return {
      starts,
      series: [...outcomeSeries(outcomes), ...(dashed === undefined ? [] : [dashed])],
      completeUntil: Date.parse(series.completeUntil),
      labels: interval === 'hour' ? 'time' : 'date',
      timeZone: series.timeZone,
    };
  }, [starts, outcomes, outcomesBefore, series.completeUntil, series.timeZone, interval]);
  const total = sumOf(outcomes);
  const totalBefore = outcomesBefore && sumOf(outcomesBefore);
  if (total.requests === 0 && (totalBefore?.requests ?? 0) === 0)
    return (
      <EmptyState title="No requests">
        {Object.keys(view.filters).length > 0
          ? 'None in this time that the filters let through.'
          : 'None in this time. They appear here within a few seconds.'}
      </EmptyState>
    );
  return (
    <>
      <OutcomeFigures total={total} before={totalBefore} />
      <Chart
        data={data}
        sentence={outcomeSentence(total, when(view))}
        foot={
          view.isCompared && totalBefore !== undefined
            ? `The time before had ${formatNumber(totalBefore.requests)} requests.`
            : 'What may still grow is drawn lighter.'
        }
      />
    </>
  );
}

function when({ range, dates }: UsageView): string {
  if (range !== 'custom') return `in the ${RANGES[range].label.toLowerCase()}`;
  return dates === undefined ? '' : `from ${dates.first} to ${dates.last}`;
}
