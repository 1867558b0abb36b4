import { useMemo } from 'react';
import { Link } from 'wouter';
import { sumOf } from '../../api/outcome-counts.ts';
import type { UsageSeries } from '../../api/read-usage-series.ts';
import { Chart } from '../../components/charts/chart.tsx';
import { Panel } from '../../components/layout/panel.tsx';
import { LiveState } from '../../components/states/live-state.tsx';
import { bucketsOf } from '../usage/buckets.ts';
import { ChartSkeleton } from '../usage/chart-skeleton.tsx';
import { outcomeSentence, outcomeSeries } from '../usage/outcome-chart.ts';
import { usePlanDay } from './use-plan-day.ts';

/** The outcomes of the last 24 hours of a plan's requests. */
export function PlanUsage({ rateLimitId }: { readonly rateLimitId: string }) {
  const live = usePlanDay(rateLimitId);
  return (
    <Panel
      title="Requests by outcome"
      about="All keys under this plan, last 24 hours"
      action={<Link href={`/usage?rateLimitId=${encodeURIComponent(rateLimitId)}`}>View in usage</Link>}
    >
      <LiveState live={live} what="the usage" skeleton={<ChartSkeleton />}>
        {(series) => <DayChart series={series} />}
      </LiveState>
    </Panel>
  );
}

function DayChart({ series }: { readonly series: UsageSeries }) {
  const { starts, outcomes } = useMemo(() => bucketsOf(series, 'hour'), [series]);
  const data = useMemo(
    () => ({
      starts,
      series: outcomeSeries(outcomes),
      completeUntil: Date.parse(series.completeUntil),
      labels: 'time' as const,
    }),
    [starts, outcomes, series.completeUntil],
  );
  return <Chart data={data} sentence={outcomeSentence(sumOf(outcomes), 'in 24 hours')} />;
}
