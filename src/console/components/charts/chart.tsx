import { type ReactNode, useEffect, useRef, useState } from 'react';
import { localTimeZone } from '../../format/exact-time.ts';
import { formatNumber } from '../../format/numbers.ts';
import { TextButton } from '../forms/button.tsx';
import { classes } from '../layout/classes.ts';
import { Skeleton } from '../states/skeleton.tsx';
import { bucketName } from './bucket-name.ts';
import styles from './chart.module.css';
import type { ChartCanvas } from './chart-canvas.ts';
import type { ChartData } from './chart-data.ts';

interface ChartProps {
  readonly data: ChartData;
  /** The content of the chart as a sentence: "4,120 requests, 312 of them limited, in the last 24 hours". */
  readonly sentence: string;
  readonly foot?: ReactNode;
  /** What a click on a bucket does. The page offers the same for the keyboard. */
  readonly onSelect?: (start: number) => void;
}

/** A chart of time buckets with stacked bars of outcomes. The same numbers are available as a table. */
export function Chart({ data, sentence, foot, onSelect }: ChartProps) {
  const [asTable, setAsTable] = useState(false);
  return (
    <figure className={styles.figure}>
      <div className={styles.head}>
        <figcaption className={styles.sentence}>{sentence}</figcaption>
        <ul className={styles.legend} aria-label="Series">
          {data.series.map(({ name, tone }) => (
            <li key={name}>
              <span className={classes(styles.swatch, styles[tone])} aria-hidden="true" />
              {name}
            </li>
          ))}
        </ul>
      </div>
      {asTable ? <ChartTable data={data} /> : <Canvas data={data} onSelect={onSelect} />}
      <div className={styles.foot}>
        <span>
          Times are in {data.timeZone ?? localTimeZone()}. {foot}
        </span>
        <TextButton onClick={() => setAsTable(!asTable)}>
          {asTable ? 'View as chart' : 'View as table'}
        </TextButton>
      </div>
    </figure>
  );
}

/** Drawn by ECharts, which is loaded with the first chart. */
function Canvas({ data, onSelect }: Pick<ChartProps, 'data'> & { onSelect: ChartProps['onSelect'] }) {
  const element = useRef<HTMLDivElement>(null);
  const [canvas, setCanvas] = useState<ChartCanvas>();
  const [isMissing, setMissing] = useState(false);
  const select = useRef<(index: number) => void>(undefined);
  useEffect(() => {
    select.current = (index) => {
      const start = data.starts[index];
      if (start !== undefined) onSelect?.(start);
    };
  });
  useEffect(() => {
    let made: ChartCanvas | undefined;
    let isGone = false;
    import('./chart-canvas.ts').then(
      ({ createChartCanvas }) => {
        if (isGone || element.current === null) return;
        made = createChartCanvas(element.current, (index) => select.current?.(index));
        setCanvas(made);
      },
      // A new version of the gateway has replaced the file, or the network has failed.
      () => setMissing(true),
    );
    return () => {
      isGone = true;
      made?.dispose();
    };
  }, []);
  useEffect(() => canvas?.draw(data), [canvas, data]);
  if (isMissing)
    return (
      <p className={styles.missing}>The chart could not be loaded. Load the page again, or view the table.</p>
    );
  return (
    <div className={styles.canvas} aria-hidden="true">
      {canvas === undefined && <Skeleton />}
      {/* Only ECharts changes the content of this element. */}
      <div ref={element} className={styles.drawing} />
    </div>
  );
}

function ChartTable({ data }: { readonly data: ChartData }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls has to be reached by the keyboard
    <section className={styles.table} tabIndex={0} aria-label="The chart as a table">
      <table>
        <thead>
          <tr>
            <th scope="col">From</th>
            {data.series.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {data.starts.map((start, index) => (
            <tr key={start}>
              <td>{bucketName(start, data.labels, data.timeZone)}</td>
              {data.series.map(({ name, values }) => (
                <td key={name}>{values[index] == null ? '–' : formatNumber(values[index])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
