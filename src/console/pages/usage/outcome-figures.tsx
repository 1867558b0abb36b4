import type { ReactNode } from 'react';
import type { Outcomes } from '../../api/outcome-counts.ts';
import { NumberText } from '../../components/text/number-text.tsx';
import { formatNumber, formatShare } from '../../format/numbers.ts';
import styles from './usage.module.css';

interface OutcomeFiguresProps {
  readonly total: Outcomes;
  /** The outcomes of the previous period. */
  readonly before: Outcomes | undefined;
}

/** The outcomes of a span as figures, each with its share or its change. */
export function OutcomeFigures({ total, before }: OutcomeFiguresProps) {
  const figure = (name: 'allowed' | 'limited' | 'failed', label: string) => (
    <Figure
      label={label}
      value={<NumberText value={total[name]} />}
      note={
        before === undefined
          ? total.requests > 0 && `${formatShare(total[name] / total.requests)} of all`
          : changeWords(total[name], before[name])
      }
    />
  );
  return (
    <dl className={styles.figures}>
      <Figure
        label="Requests"
        value={<NumberText value={total.requests} />}
        note={before !== undefined && changeWords(total.requests, before.requests)}
      />
      {figure('allowed', 'Allowed')}
      {figure('limited', 'Limited')}
      {figure('failed', 'Failed')}
      <Figure
        label="Average response time"
        value={`${formatNumber(Math.round(total.averageResponseTimeMs * 10) / 10)} ms`}
        note={before !== undefined && changeWords(total.averageResponseTimeMs, before.averageResponseTimeMs)}
      />
    </dl>
  );
}

interface FigureProps {
  readonly label: string;
  readonly value: ReactNode;
  readonly note: string | false;
}

function Figure({ label, value, note }: FigureProps) {
  return (
    <div className={styles.figure}>
      <dt>{label}</dt>
      <dd className={styles.value}>{value}</dd>
      {note !== false && <dd className={styles.note}>{note}</dd>}
    </div>
  );
}

/** "12% more than before". */
function changeWords(value: number, before: number): string {
  if (before === 0) return value === 0 ? 'none before either' : 'none before';
  const change = (value - before) / before;
  if (Math.abs(change) < 0.005) return 'as before';
  // Beyond ten times, a factor is easier to read than a percentage.
  if (change >= 9) return `${formatNumber(Math.round(value / before))} times as many as before`;
  return `${formatShare(Math.abs(change))} ${change > 0 ? 'more' : 'less'} than before`;
}
