import { useMemo } from 'react';
import { useScopes } from '../../api/api-context.tsx';
import { useLive } from '../../api/live.ts';
import { type Outcomes, sumOf } from '../../api/outcome-counts.ts';
import { readUsageSeries, type UsageSeries } from '../../api/read-usage-series.ts';
import { Chart } from '../../components/charts/chart.tsx';
import { Panel } from '../../components/layout/panel.tsx';
import { LiveState } from '../../components/states/live-state.tsx';
import { counted, formatNumber, formatShare } from '../../format/numbers.ts';
import { bucketsOf } from '../usage/buckets.ts';
import { ChartSkeleton } from '../usage/chart-skeleton.tsx';
import { KeyFigures } from './key-figures.tsx';
import { rateWords } from './limit-words.ts';
import type { Plan } from './plan-types.ts';
import { usePlanDay } from './use-plan-day.ts';

const MOST_KEYS = 10;

/** The requests that shadow limits would have rejected; renders nothing for a plan without such limits. */
export function ShadowPanel({ plan }: { readonly plan: Plan }) {
  const { can } = useScopes();
  const shadows = (plan.additionalLimits ?? []).filter(({ mode }) => mode === 'shadow');
  if (shadows.length === 0 || !can('usage:read')) return null;
  const names = shadows.map((limit) => `${limit.limitId} (${rateWords(limit)})`).join(', ');
  return (
    <Panel title="What shadow limits would have rejected" about={`Tried and not enforced: ${names}`}>
      <ShadowDay rateLimitId={plan.rateLimitId} limits={shadows.length} />
    </Panel>
  );
}

function ShadowDay({ rateLimitId, limits }: { readonly rateLimitId: string; readonly limits: number }) {
  const live = usePlanDay(rateLimitId);
  return (
    <LiveState live={live} what="the usage" skeleton={<ChartSkeleton />}>
      {(series) => <ShadowChart series={series} rateLimitId={rateLimitId} limits={limits} />}
    </LiveState>
  );
}

interface ShadowChartProps {
  readonly series: UsageSeries;
  readonly rateLimitId: string;
  readonly limits: number;
}

function ShadowChart({ series, rateLimitId, limits }: ShadowChartProps) {
  const { starts, outcomes } = useMemo(() => bucketsOf(series, 'hour'), [series]);
  const data = useMemo(
    () => ({
      starts,
      series: [
        {
          name: 'Would have been rejected',
          tone: 'limited' as const,
          values: outcomes.map(({ shadowLimited }) => shadowLimited),
        },
      ],
      completeUntil: Date.parse(series.completeUntil),
      labels: 'time' as const,
    }),
    [starts, outcomes, series.completeUntil],
  );
  const total = sumOf(outcomes);
  if (total.shadowLimited === 0) return <p>{shadowSentence(total, limits)}</p>;
  return (
    <>
      <Chart data={data} sentence={shadowSentence(total, limits)} />
      <ShadowKeys rateLimitId={rateLimitId} />
    </>
  );
}

function shadowSentence({ requests, limited, shadowLimited }: Outcomes, limits: number): string {
  const decided = requests - limited;
  if (shadowLimited === 0)
    return `Nothing: all ${counted(decided, 'request')} of the last 24 hours had room in ${limits === 1 ? 'it' : 'them'}.`;
  // With several limits, a request may count once for each of them.
  if (limits > 1) return `They would have rejected ${counted(shadowLimited, 'time')} in 24 hours.`;
  const share = formatShare(shadowLimited / Math.max(decided, 1));
  return `It would have rejected ${formatNumber(shadowLimited)} of ${counted(decided, 'allowed request')} in 24 hours (${share}).`;
}

/** The keys that would be affected. */
function ShadowKeys({ rateLimitId }: { readonly rateLimitId: string }) {
  const hit = useHitKeys(rateLimitId);
  if (hit.length === 0) return null;
  return (
    <KeyFigures
      name="Keys that shadow limits would have rejected"
      heads={['Would have been rejected', 'Requests']}
      keys={hit.map(({ consumerApiKeyId: id = '', consumerApiKeyName: name, shadowLimited, requests }) => ({
        id,
        name,
        figures: [shadowLimited, requests],
      }))}
    />
  );
}

/** The keys that shadow limits would have rejected most often in the last 24 hours. */
function useHitKeys(rateLimitId: string) {
  const live = useLive(
    ['plan', rateLimitId, 'shadow-keys'],
    (client, signal) =>
      readUsageSeries(client, { rateLimitId, interval: 'total', groupBy: 'key', top: 100 }, signal),
    { scope: 'usage:read' },
  );
  return (live.data?.rows ?? [])
    .filter(({ shadowLimited, consumerApiKeyId }) => shadowLimited > 0 && consumerApiKeyId !== '__other__')
    .toSorted((a, b) => b.shadowLimited - a.shadowLimited)
    .slice(0, MOST_KEYS);
}
