import { useMemo } from 'react';
import { ManagementFault } from '../../client/management-fault.ts';
import { useScopes } from '../api/api-context.tsx';
import { faultSentence } from '../api/fault-kind.ts';
import { type Live, useLive } from '../api/live.ts';
import { readUsageSeries, type UsageSeries } from '../api/read-usage-series.ts';
import { type AddressFields, useAddress } from '../api/use-address.ts';
import { Button } from '../components/forms/button.tsx';
import { CsvButton } from '../components/forms/csv-button.tsx';
import { focusAround } from '../components/forms/focus-around.ts';
import { PageHeader } from '../components/layout/page-header.tsx';
import { Panel } from '../components/layout/panel.tsx';
import { PanelStack } from '../components/layout/panels.tsx';
import { LiveState, NoScope } from '../components/states/live-state.tsx';
import { Notice } from '../components/states/notice.tsx';
import { localTimeZone } from '../format/exact-time.ts';
import { now } from '../format/now.ts';
import { BucketTable } from './usage/bucket-table.tsx';
import { ChartSkeleton } from './usage/chart-skeleton.tsx';
import { GroupTable } from './usage/group-table.tsx';
import { RangeTooLarge } from './usage/range-too-large.tsx';
import styles from './usage/usage.module.css';
import { UsageChart } from './usage/usage-chart.tsx';
import { UsageControls } from './usage/usage-controls.tsx';
import {
  csvQueryOf,
  momentFields,
  queryOf,
  readView,
  spanBefore,
  spanOf,
  type UsageView,
} from './usage/usage-view.ts';

/** Longer series are polled less often. */
const SLOW_POLL_MS = 30_000;

/** Requests over time by outcome. The URL holds the whole state of the page. */
export function UsagePage() {
  const [params, changeAddress] = useAddress();
  const { can } = useScopes();
  const text = params.toString();
  const view = useMemo(() => readView(new URLSearchParams(text)), [text]);
  const change = (fields: AddressFields) => {
    // A moment is in the dates with which it was pointed out.
    const isElsewhere = ['range', 'from', 'to'].some((name) => name in fields);
    changeAddress({ ...(isElsewhere && { at: undefined }), ...fields });
  };
  if (!can('usage:read')) return <NoScope what="the usage" scope="usage:read" />;
  return (
    <>
      <PageHeader
        title="Usage"
        about="Requests of all keys over time, and what became of them."
        actions={
          <CsvButton
            name="usage.csv"
            fetchCsv={(client) =>
              client.GET('/api-keys/usage', {
                params: { query: { ...csvQueryOf(view, now(), localTimeZone()), format: 'csv' } },
                parseAs: 'blob',
              })
            }
          />
        }
      />
      <UsageControls view={view} onChange={change} />
      <Usage view={view} onChange={change} />
    </>
  );
}

interface UsageProps {
  readonly view: UsageView;
  readonly onChange: (fields: AddressFields) => void;
}

function Usage({ view, onChange }: UsageProps) {
  const { series, before } = useSeries(view);
  const { error } = series;
  const isRefreshing = series.status === 'refreshing';
  // Until both have arrived, the numbers of one are those of another range.
  const isComparable = view.isCompared && !isRefreshing && before.status !== 'refreshing';
  const mark = (at: number | undefined) =>
    onChange(at === undefined ? { at: undefined } : momentFields(view, spanOf(view, now()), at));
  if (series.status === 'failed' && error instanceof ManagementFault && error.code === 'range_too_large')
    return <RangeTooLarge fault={error} view={view} onChange={onChange} />;
  return (
    <PanelStack>
      <Panel title="Requests by outcome">
        <LiveState live={series} what="the usage" skeleton={<ChartSkeleton />}>
          {(shown) => (
            <div className={isRefreshing ? styles.refreshing : undefined} aria-busy={isRefreshing}>
              {view.isCompared && <BeforeFault before={before} />}
              <UsageChart
                series={shown}
                before={isComparable ? before.data : undefined}
                view={view}
                onMark={mark}
              />
            </div>
          )}
        </LiveState>
      </Panel>
      {view.groupBy === undefined ? (
        <BucketTable live={series} view={view} onMark={mark} />
      ) : (
        // The rows of another grouping have no names in this one.
        <GroupTable key={view.groupBy} view={view} groupBy={view.groupBy} onChange={onChange} />
      )}
    </PanelStack>
  );
}

/** Says that the previous period could not be read, for a comparison. */
function BeforeFault({ before: { error, refresh } }: { readonly before: Live<UsageSeries> }) {
  if (error === null) return null;
  return (
    <Notice
      tone="limited"
      action={
        <Button ref={focusAround} small onClick={refresh}>
          Try again
        </Button>
      }
    >
      The time before was not read. {faultSentence(error)}
    </Notice>
  );
}

/** The series of the view and, for a comparison, that of the previous period. */
function useSeries(view: UsageView) {
  const { isCompared, groupBy: _, at: __, ...rest } = view;
  const isLong = view.interval === 'hour' && view.range !== '24h';
  const options = { scope: 'usage:read', ...(isLong && { pollMs: SLOW_POLL_MS }) } as const;
  const series = useLive(
    ['usage', rest, localTimeZone()],
    (client, signal) => readUsageSeries(client, queryOf(view, spanOf(view, now()), localTimeZone()), signal),
    options,
  );
  const before = useLive(
    ['usage', 'before', rest, localTimeZone()],
    (client, signal) =>
      readUsageSeries(client, queryOf(view, spanBefore(view, spanOf(view, now())), localTimeZone()), signal),
    { ...options, pollMs: SLOW_POLL_MS, enabled: isCompared },
  );
  return { series, before };
}
