import { useMemo } from 'react';
import { type Outcomes, sumOf } from '../../api/outcome-counts.ts';
import type { UsageSeries } from '../../api/read-usage-series.ts';
import { bucketName } from '../../components/charts/bucket-name.ts';
import { Chart } from '../../components/charts/chart.tsx';
import type { ChartData, ChartSeries } from '../../components/charts/chart-data.ts';
import { Button } from '../../components/forms/button.tsx';
import { CopyButton } from '../../components/forms/copy-button.tsx';
import { focusFilters } from '../../components/forms/focus-filters.ts';
import { EmptyState } from '../../components/states/empty-state.tsx';
import { Notice } from '../../components/states/notice.tsx';
import { counted, formatNumber } from '../../format/numbers.ts';
import { bucketIndexOf, bucketsOf, type Interval } from './buckets.ts';
import { outcomeSentence, outcomeSeries } from './outcome-chart.ts';
import { OutcomeFigures } from './outcome-figures.tsx';
import { RANGES, type UsageView } from './usage-view.ts';

interface UsageChartProps {
  readonly series: UsageSeries;
  /** The series of the previous period, for the comparison. */
  readonly before: UsageSeries | undefined;
  readonly view: UsageView;
  /** Points out the bucket that begins then; undefined: none. */
  readonly onMark: (start: number | undefined) => void;
}

/** The figures of a span, and its buckets as a chart. */
export function UsageChart({ series, before, view, onMark }: UsageChartProps) {
  const { interval, at } = view;
  const { starts, outcomes } = useMemo(() => bucketsOf(series, interval), [series, interval]);
  const outcomesBefore = useMemo(
    () => (before === undefined ? undefined : bucketsOf(before, interval).outcomes),
    [before, interval],
  );
  const marked = at === undefined ? -1 : bucketIndexOf(at, starts, series);
  const data = useMemo((): ChartData => {
    return {
      starts,
      series: [...outcomeSeries(outcomes), ...beforeSeries(outcomesBefore, starts, interval)],
      completeUntil: Date.parse(series.completeUntil),
      labels: interval === 'hour' ? 'time' : 'date',
      timeZone: series.timeZone,
      ...(marked >= 0 && { marked }),
    };
  }, [starts, outcomes, outcomesBefore, series.completeUntil, series.timeZone, interval, marked]);
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
      {marked >= 0 && <Moment data={data} outcomes={outcomes[marked]} onClear={() => onMark(undefined)} />}
      <Chart
        data={data}
        onSelect={onMark}
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

/** All requests of the previous period, bucket by bucket; empty if its buckets are no counterparts. */
function beforeSeries(
  before: readonly Outcomes[] | undefined,
  starts: readonly number[],
  interval: Interval,
): readonly ChartSeries[] {
  if (before === undefined) return [];
  // The 31 days before October are of two months. Hours differ only where clocks change.
  if (interval !== 'hour' && before.length !== starts.length) return [];
  const values = starts.map((_, index) => before[index]?.requests ?? null);
  return [{ name: 'All, the time before', tone: 'before', values }];
}

interface MomentProps {
  readonly data: ChartData;
  readonly outcomes: Outcomes | undefined;
  readonly onClear: () => void;
}

/** The bucket that the address points out. */
function Moment({ data: { starts, marked = 0, labels, timeZone }, outcomes, onClear }: MomentProps) {
  if (outcomes === undefined) return null;
  const { requests, limited, failed } = outcomes;
  const clear = () => {
    onClear();
    focusFilters();
  };
  return (
    <Notice
      tone="neutral"
      action={
        <>
          <CopyButton text={window.location.href} what="link" />
          <Button small look="quiet" onClick={clear}>
            Clear
          </Button>
        </>
      }
    >
      {bucketName(starts[marked] ?? 0, labels, timeZone)}: {counted(requests, 'request')},{' '}
      {formatNumber(limited)} limited, {formatNumber(failed)} failed.
    </Notice>
  );
}

function when({ range, dates }: UsageView): string {
  if (range !== 'custom') return `in the ${RANGES[range].label.toLowerCase()}`;
  return dates === undefined ? '' : `from ${dates.first} to ${dates.last}`;
}
