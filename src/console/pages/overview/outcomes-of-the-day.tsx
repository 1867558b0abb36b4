import { ChartColumn, CircleX, OctagonPause, Timer } from 'lucide-react';
import { useMemo } from 'react';
import { instantText } from '../../api/instant-text.ts';
import { useLive } from '../../api/live.ts';
import { readUsageSeries, type UsageSeries } from '../../api/read-usage-series.ts';
import { Chart } from '../../components/charts/chart.tsx';
import type { ChartData } from '../../components/charts/chart-data.ts';
import { Panel } from '../../components/layout/panel.tsx';
import { PanelStack } from '../../components/layout/panels.tsx';
import { LiveState } from '../../components/states/live-state.tsx';
import { NumberText } from '../../components/text/number-text.tsx';
import { now } from '../../format/now.ts';
import { formatNumber } from '../../format/numbers.ts';
import { outcomeSentence, outcomeSeries } from '../usage/outcome-chart.ts';
import { type DayOfOutcomes, dayOfOutcomes, twoDays } from './day-comparison.ts';
import styles from './overview.module.css';
import { StatTile } from './stat-tile.tsx';

/** The requests of the last 24 hours compared with the 24 hours before: as figures, and hour by hour. */
export function OutcomesOfTheDay() {
  const live = useLive(
    ['outcomes-of-the-day'],
    (client, signal) => {
      const { from, to } = twoDays(now());
      return readUsageSeries(
        client,
        { from: instantText(from), to: instantText(to), interval: 'hour' },
        signal,
      );
    },
    { scope: 'usage:read' },
  );
  return (
    <LiveState live={live} what="the usage" skeleton={<DaySkeleton />}>
      {(series) => <Day series={series} />}
    </LiveState>
  );
}

function Day({ series }: { readonly series: UsageSeries }) {
  const completeUntil = Date.parse(series.completeUntil);
  const day = useMemo(
    () => dayOfOutcomes(series.rows, Date.parse(series.to), completeUntil),
    [series, completeUntil],
  );
  const data = useMemo(() => chartData(day, completeUntil), [day, completeUntil]);
  return (
    <>
      <Tiles day={day} />
      <Panel
        title="Requests by outcome"
        about={
          day.totalBefore.requests === 0
            ? 'Hour by hour. There were no requests the day before.'
            : 'Hour by hour'
        }
      >
        <Chart data={data} sentence={sentence(day)} foot="The hour that runs is drawn lighter." />
      </Panel>
    </>
  );
}

const COUNTS = [
  { of: 'requests', name: 'Requests', icon: ChartColumn, href: '/usage' },
  { of: 'limited', name: 'Limited (429)', icon: OctagonPause, tone: 'limited', href: '/usage?groupBy=key' },
  { of: 'failed', name: 'Errors', icon: CircleX, tone: 'failed', href: '/usage?groupBy=key' },
] as const;

function Tiles({ day: { total, totalBeforeByNow: before } }: { readonly day: DayOfOutcomes }) {
  const compared = (of: (typeof COUNTS)[number]['of'] | 'averageResponseTimeMs') => ({
    now: total[of],
    before: before[of],
  });
  const hasTimes = total.forwarded > 0 && before.forwarded > 0;
  return (
    <div className={styles.tiles}>
      {COUNTS.map(({ of, ...tile }) => (
        <StatTile key={of} {...tile} compared={before.requests > 0 ? compared(of) : undefined}>
          <NumberText value={total[of]} />
        </StatTile>
      ))}
      <StatTile
        name="Response time"
        icon={Timer}
        compared={hasTimes ? compared('averageResponseTimeMs') : undefined}
        href="/usage"
      >
        {formatNumber(Math.round(total.averageResponseTimeMs * 10) / 10)}
        <small>ms</small>
      </StatTile>
    </div>
  );
}

function chartData(
  { starts, hours, hoursBefore, totalBefore }: DayOfOutcomes,
  completeUntil: number,
): ChartData {
  return {
    starts,
    completeUntil,
    labels: 'time',
    series: [
      ...outcomeSeries(hours),
      ...(totalBefore.requests > 0
        ? [
            {
              name: 'All, the day before',
              tone: 'before' as const,
              values: hoursBefore.map(({ requests }) => requests),
            },
          ]
        : []),
    ],
  };
}

function sentence({ total }: DayOfOutcomes): string {
  return outcomeSentence(total, total.requests === 0 ? 'in the last 24 hours' : 'in 24 hours');
}

function DaySkeleton() {
  return (
    <PanelStack>
      <div className={styles.tiles}>
        {[1, 2, 3, 4].map((tile) => (
          <div key={tile} className={styles.tileSkeleton} />
        ))}
      </div>
      <div className={styles.chartSkeleton} />
    </PanelStack>
  );
}
