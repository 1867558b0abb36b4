import { useEffect, useState } from 'preact/hooks';
import { instantText } from '../../console/api/instant-text.ts';
import { saveFile } from '../../console/api/save-file.ts';
import { localTimeZone } from '../../console/format/exact-time.ts';
import { Text } from '../shared/text.tsx';
import { WORDS } from '../words.ts';
import { FigureTable } from './figure-table.tsx';
import { OutcomeChart } from './outcome-chart.tsx';
import type { SelfService, UsageRow } from './own-key.ts';
import { type Bucket, bucketStarts, bucketsOf, bucketText, outcomesOf, type Range } from './usage-buckets.ts';

const { usage: words } = WORDS.portal;

const RANGES: readonly Range[] = [
  { days: 1, interval: 'hour' },
  { days: 7, interval: 'day' },
  { days: 30, interval: 'day' },
];
const [LAST_DAY = { days: 1, interval: 'hour' }] = RANGES;
const BUSIEST = 10;

/** What the panels show: of the range, by endpoint, and of the last day. */
interface Shown {
  readonly range: Range;
  readonly buckets: readonly Bucket[];
  readonly endpoints: readonly UsageRow[];
  readonly lastDay: readonly Bucket[];
}

interface UsagePanelsProps {
  readonly service: SelfService;
  /** When the key was read: the usage is read again with it. */
  readonly at: number;
}

/** The use of a key over time and by endpoint, and what was limited in the last day. */
export function UsagePanels({ service, at }: UsagePanelsProps) {
  const [range, setRange] = useState(LAST_DAY);
  /** The `at` at which the consumer has chosen the range: what is read again by itself is not read out. */
  const [chosenAt, setChosenAt] = useState<number>();
  const [shown, setShown] = useState<Shown>();
  const [fault, setFault] = useState<string>();
  const [fileFault, setFileFault] = useState<string>();
  useEffect(() => {
    let isCurrent = true;
    readUsage(service, range, at).then(
      (read) => {
        if (!isCurrent) return;
        setShown(read);
        setFault(undefined);
        setFileFault(undefined);
      },
      (error: Error) => isCurrent && setFault(error.message),
    );
    return () => {
      isCurrent = false;
    };
  }, [service, range, at]);
  const save = () =>
    service.usageFile(seriesQuery(range, at)).then(
      (file) => {
        saveFile(file, words.fileName(range.days));
        setFileFault(undefined);
      },
      (error: Error) => setFileFault(error.message),
    );
  const shownFault = fault ?? fileFault;
  return (
    <>
      <section class="panel" aria-busy={shown?.range !== range}>
        <h2>{words.title}</h2>
        <div class="row">
          <RangeChoice
            chosen={range}
            onChange={(next) => {
              setRange(next);
              setChosenAt(at);
            }}
          />
          <button type="button" onClick={save}>
            {words.csv}
          </button>
        </div>
        {shownFault !== undefined && (
          <p class="warning" role="alert">
            <Text>{shownFault}</Text>
          </p>
        )}
        {shown === undefined ? (
          <p class="soft waiting">{fault === undefined && <Text>{words.loading}</Text>}</p>
        ) : (
          <OutcomeChart buckets={shown.buckets} range={shown.range} isSpoken={chosenAt === at} />
        )}
      </section>
      {shown !== undefined && <EndpointsPanel {...shown} />}
      {shown !== undefined && <LimitedPanel lastDay={shown.lastDay} />}
    </>
  );
}

async function readUsage(service: SelfService, range: Range, now: number): Promise<Shown> {
  const [series, endpoints, day] = await Promise.all([
    service.usage(seriesQuery(range, now)),
    service.usage({
      ...utcDays(range.days, now),
      interval: 'total',
      groupBy: 'endpoint',
      top: String(BUSIEST),
    }),
    range === LAST_DAY ? undefined : service.usage(seriesQuery(LAST_DAY, now)),
  ]);
  const buckets = bucketsOf(bucketStarts(range, now), series.rows);
  const lastDay = day === undefined ? buckets : bucketsOf(bucketStarts(LAST_DAY, now), day.rows);
  const busiestFirst = endpoints.rows.toSorted((one, other) => other.requests - one.requests);
  return { range, buckets, endpoints: busiestFirst, lastDay };
}

function seriesQuery(range: Range, now: number): Readonly<Record<string, string>> {
  const [first = now] = bucketStarts(range, now);
  return {
    from: instantText(first),
    interval: range.interval,
    ...(range.interval === 'day' && { timeZone: localTimeZone() }),
  };
}

/** Whole days of UTC: the gateway counts endpoints by these. For the last 24 hours these are yesterday and today. */
function utcDays(days: number, now: number): { readonly from: string } {
  return { from: instantText(now - Math.max(1, days - 1) * 86_400_000).slice(0, 10) };
}

function RangeChoice({
  chosen,
  onChange,
}: {
  readonly chosen: Range;
  readonly onChange: (range: Range) => void;
}) {
  return (
    <fieldset class="ranges">
      <legend class="hidden">{words.range}</legend>
      {RANGES.map((range) => (
        <label key={range.days}>
          <input type="radio" name="range" checked={range === chosen} onChange={() => onChange(range)} />
          <span>{words.days(range.days)}</span>
        </label>
      ))}
    </fieldset>
  );
}

function EndpointsPanel({ endpoints, range }: Pick<Shown, 'endpoints' | 'range'>) {
  return (
    <section class="panel">
      <h2>{words.endpoints}</h2>
      <p class="soft">
        <Text>{words.endpointDays(range.days)}</Text>
      </p>
      {endpoints.length > 0 && (
        <FigureTable
          heads={[words.endpoint, words.allowed, words.limited, words.failed]}
          nameClass="path"
          rows={endpoints.map((row) => {
            const { endpoint = '' } = row;
            const { allowed, limited, failed } = outcomesOf([row]);
            const name = endpoint === '__other__' ? words.others : endpoint;
            return { id: endpoint, name, figures: [allowed, limited, failed] };
          })}
        />
      )}
      {endpoints.length === 0 && <p>{words.none}</p>}
    </section>
  );
}

/** The hours of the last day in which requests were rejected with 429. */
function LimitedPanel({ lastDay }: Pick<Shown, 'lastDay'>) {
  const hours = lastDay.filter(({ limited }) => limited > 0);
  const total = hours.reduce((sum, { limited }) => sum + limited, 0);
  return (
    <section class="panel">
      <h2>{words.limitedTitle}</h2>
      <p key={total}>{total === 0 ? words.neverLimited : words.limitedTimes(total)}</p>
      {hours.length > 0 && (
        <FigureTable
          heads={[words.hour, words.limited]}
          rows={hours.toReversed().map((bucket) => ({
            id: bucket.start,
            name: bucketText(bucket, 'hour'),
            figures: [bucket.limited],
          }))}
        />
      )}
    </section>
  );
}
