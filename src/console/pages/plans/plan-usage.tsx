import { useMemo } from 'react';
import { Link } from 'wouter';
import type { UsageSeries } from '../../api/read-usage-series.ts';
import { Chart } from '../../components/charts/chart.tsx';
import { Panel } from '../../components/layout/panel.tsx';
import { LiveState } from '../../components/states/live-state.tsx';
import { ChartSkeleton } from '../usage/chart-skeleton.tsx';
import { outcomeChart, outcomeSentence } from '../usage/outcome-chart.ts';
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
  const { data, total } = useMemo(() => outcomeChart(series, 'hour'), [series]);
  return <Chart data={data} sentence={outcomeSentence(total, 'in 24 hours')} />;
}
