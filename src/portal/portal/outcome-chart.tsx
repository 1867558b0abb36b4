import { formatNumber } from '../../console/format/numbers.ts';
import { Text } from '../shared/text.tsx';
import { WORDS } from '../words.ts';
import { FigureTable } from './figure-table.tsx';
import { type Bucket, bucketText, type Range } from './usage-buckets.ts';

const { usage: words } = WORDS.portal;
const OUTCOMES = ['allowed', 'limited', 'failed'] as const;
const WIDTH = 600;
const HEIGHT = 160;

interface OutcomeChartProps {
  readonly buckets: readonly Bucket[];
  readonly range: Range;
  /** Whether the sentence is read out when it changes. */
  readonly isSpoken: boolean;
}

/** Requests by outcome over time, as bars, with the same numbers as a table. */
export function OutcomeChart({ buckets, range: { days, interval }, isSpoken }: OutcomeChartProps) {
  const totals = OUTCOMES.map((outcome) => buckets.reduce((sum, bucket) => sum + bucket[outcome], 0));
  const [allowed = 0, limited = 0, failed = 0] = totals;
  const most = Math.max(1, ...buckets.map(totalOf));
  const [first, last] = [buckets[0], buckets.at(-1)];
  return (
    <figure class="chart">
      <figcaption aria-live={isSpoken ? 'polite' : 'off'} aria-atomic="true">
        {/* Without it, the sentence of another range could be the same, and nothing would be read out. */}
        <span class="hidden">
          <Text>{`${words.days(days)}: `}</Text>
        </span>
        <span key={`${allowed} ${limited} ${failed}`}>{words.sentence(allowed, limited, failed)}</span>
      </figcaption>
      <ul class="legend">
        {OUTCOMES.map((outcome, index) => (
          <li key={outcome} class={outcome}>
            {words[outcome]} <strong key={totals[index]}>{formatNumber(totals[index] ?? 0)}</strong>
          </li>
        ))}
      </ul>
      <p class="soft scale" aria-hidden="true">
        <Text>{words.most(formatNumber(most))}</Text>
      </p>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {buckets.map((bucket, index) => (
          <Bar key={bucket.start} bucket={bucket} place={index} width={WIDTH / buckets.length} most={most} />
        ))}
      </svg>
      {first !== undefined && last !== undefined && (
        <p class="soft axis" aria-hidden="true">
          <Text>{bucketText(first, interval)}</Text>
          <Text>{bucketText(last, interval)}</Text>
        </p>
      )}
      <details>
        <summary>{words.asTable}</summary>
        <FigureTable
          heads={[words.start, ...OUTCOMES.map((outcome) => words[outcome])]}
          rows={buckets
            .filter((bucket) => totalOf(bucket) > 0)
            .map((bucket) => ({
              id: bucket.start,
              name: bucketText(bucket, interval),
              figures: OUTCOMES.map((outcome) => bucket[outcome]),
            }))}
        />
      </details>
    </figure>
  );
}

interface BarProps {
  readonly bucket: Bucket;
  readonly place: number;
  readonly width: number;
  readonly most: number;
}

function Bar({ bucket, place, width, most }: BarProps) {
  let top = HEIGHT;
  return (
    <g>
      {OUTCOMES.map((outcome) => {
        const height = (bucket[outcome] / most) * HEIGHT;
        top -= height;
        return (
          height > 0 && (
            <rect
              key={outcome}
              class={outcome}
              x={place * width + width * 0.1}
              y={top}
              width={width * 0.8}
              height={height}
            />
          )
        );
      })}
    </g>
  );
}

function totalOf({ allowed, limited, failed }: Bucket): number {
  return allowed + limited + failed;
}
