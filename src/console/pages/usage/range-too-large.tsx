import type { ManagementFault } from '../../../client/management-fault.ts';
import { Button } from '../../components/forms/button.tsx';
import { focusFilters } from '../../components/forms/focus-filters.ts';
import { Notice } from '../../components/states/notice.tsx';
import styles from './usage.module.css';
import type { UsageView } from './usage-view.ts';

interface RangeTooLargeProps {
  readonly fault: ManagementFault;
  readonly view: UsageView;
  readonly onChange: (fields: Readonly<Record<string, string | undefined>>) => void;
}

/** Shown if the series would have more rows than the gateway sends: offers ranges that fit. */
export function RangeTooLarge({ fault, view, onChange }: RangeTooLargeProps) {
  const largest = largestRange(fault.details.largestRange);
  const choose: typeof onChange = (fields) => {
    focusFilters();
    onChange(fields);
  };
  return (
    <Notice
      tone="limited"
      action={
        <span className={styles.ways}>
          {view.interval === 'hour' && (
            <Button small onClick={() => choose({ interval: 'day' })}>
              Chart by day
            </Button>
          )}
          {largest !== undefined && (
            <Button small onClick={() => choose({ range: undefined, from: largest.first, to: largest.last })}>
              Only {largest.first} to {largest.last}
            </Button>
          )}
        </span>
      }
    >
      This is more than 10,000 buckets of time, too much for one chart. Nothing is wrong with the usage
      itself.
    </Notice>
  );
}

/** The first and the last whole date in UTC of the range that fits. */
function largestRange(details: unknown): { readonly first: string; readonly last: string } | undefined {
  if (typeof details !== 'object' || details === null || !('from' in details) || !('to' in details))
    return undefined;
  const [from, to] = [Date.parse(String(details.from)), Date.parse(String(details.to))];
  if (Number.isNaN(from) || Number.isNaN(to)) return undefined;
  const date = (at: number) => new Date(at).toISOString().slice(0, 10);
  // One day less at each end: a date in another time zone may begin before or end after the same date in UTC.
  const [first, last] = [date(from + 86_400_000), date(to - 2 * 86_400_000)];
  return first <= last ? { first, last } : undefined;
}
