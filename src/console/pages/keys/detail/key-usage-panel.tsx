import { useMemo } from 'react';
import type { ManagementClient } from '../../../../client/management-client.ts';
import { instantText } from '../../../api/instant-text.ts';
import { useLive } from '../../../api/live.ts';
import { jsonSeries, type UsageSeries } from '../../../api/read-usage-series.ts';
import { useAddress } from '../../../api/use-address.ts';
import { Chart } from '../../../components/charts/chart.tsx';
import { Select } from '../../../components/forms/field.tsx';
import { Panel } from '../../../components/layout/panel.tsx';
import { LiveState } from '../../../components/states/live-state.tsx';
import { Skeleton } from '../../../components/states/skeleton.tsx';
import { FirstRequestLines } from '../../../components/text/first-request-lines.tsx';
import { localTimeZone } from '../../../format/exact-time.ts';
import { now } from '../../../format/now.ts';
import { outcomeChart, outcomeSentence } from '../../usage/outcome-chart.ts';
import usageStyles from '../../usage/usage.module.css';
import styles from './key-page.module.css';

const DAY_MS = 24 * 3_600_000;
const RANGES = [
  { value: '24h', label: 'Last 24 hours', ms: DAY_MS, interval: 'hour' },
  { value: '7d', label: 'Last 7 days', ms: 7 * DAY_MS, interval: 'hour' },
  { value: '30d', label: 'Last 30 days', ms: 30 * DAY_MS, interval: 'day' },
  { value: '90d', label: 'Last 90 days', ms: 90 * DAY_MS, interval: 'day' },
] as const;
type Range = (typeof RANGES)[number];

interface KeyUsagePanelProps {
  readonly keyId: string;
  /** Instead of an empty chart it shows how to make the first request. */
  readonly isUnused?: boolean;
}

/** A series with the range that it was read for: it stays while that of another range is on its way. */
interface Usage {
  readonly series: UsageSeries;
  readonly range: Range;
}

/** The requests of a key over time, by outcome. */
export function KeyUsagePanel({ keyId, isUnused = false }: KeyUsagePanelProps) {
  const [params, change] = useAddress();
  const range = RANGES.find(({ value }) => value === params.get('range')) ?? RANGES[0];
  const live = useLive(
    ['key-usage', keyId, range.value, localTimeZone()],
    (client, signal) => readUsage(client, { keyId, range, signal }),
    { scope: 'usage:read' },
  );
  return (
    <Panel
      title="Requests by outcome"
      action={
        <Select
          className={styles.range}
          aria-label="Range"
          value={range.value}
          options={RANGES.map(({ value, label }) => [value, label])}
          onText={(chosen) => change({ range: chosen })}
        />
      }
    >
      <LiveState live={live} what="the usage" skeleton={<Skeleton />}>
        {(shown) =>
          isUnused && shown.series.rows.every(({ requests }) => requests === 0) ? (
            <FirstRequest />
          ) : (
            <UsageChart shown={shown} isRefreshing={live.status === 'refreshing'} />
          )
        }
      </LiveState>
    </Panel>
  );
}

function FirstRequest() {
  return (
    <>
      <p>No request has used this key yet. These lines make the first one:</p>
      <FirstRequestLines />
    </>
  );
}

interface Wanted {
  readonly keyId: string;
  readonly range: Range;
  readonly signal: AbortSignal;
}

async function readUsage(client: ManagementClient, { keyId, range, signal }: Wanted) {
  const { data: series, ...rest } = await jsonSeries(
    client.GET('/consumer-api-key/{consumerApiKeyId}/usage', {
      params: { path: { consumerApiKeyId: keyId }, query: queryOf(range) },
      signal,
    }),
  );
  return { ...rest, ...(series !== undefined && { data: { series, range } satisfies Usage }) };
}

/** Days are those of the browser's time zone. */
function queryOf({ ms, interval }: Range) {
  const to = now();
  const from = instantText(to - ms);
  return { from, interval, ...(interval === 'day' && { timeZone: localTimeZone() }) };
}

interface UsageChartProps {
  readonly shown: Usage;
  readonly isRefreshing: boolean;
}

function UsageChart({ shown: { series, range }, isRefreshing }: UsageChartProps) {
  const { data, total } = useMemo(() => outcomeChart(series, range.interval), [series, range]);
  return (
    <div className={isRefreshing ? usageStyles.refreshing : undefined} aria-busy={isRefreshing}>
      <Chart data={data} sentence={outcomeSentence(total, `in the ${range.label.toLowerCase()}`)} />
    </div>
  );
}
