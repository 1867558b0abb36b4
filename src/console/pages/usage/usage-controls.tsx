import { X } from 'lucide-react';
import { type FocusEvent, type ReactNode, useEffect, useState } from 'react';
import { useScopes } from '../../api/api-context.tsx';
import { Button } from '../../components/forms/button.tsx';
import { Input, type Option, Select } from '../../components/forms/field.tsx';
import { focusFilters } from '../../components/forms/focus-filters.ts';
import { KeyName } from '../../components/text/key-name.tsx';
import { localTimeZone } from '../../format/exact-time.ts';
import { now } from '../../format/now.ts';
import { usePlanOptions } from '../keys/plan-choice.tsx';
import styles from './usage.module.css';
import { dateOf, GROUPINGS, INTERVAL_LABELS, isRange, RANGES, type UsageView } from './usage-view.ts';

interface UsageControlsProps {
  readonly view: UsageView;
  /** Changes fields by their names in the URL; undefined removes one. */
  readonly onChange: (fields: Readonly<Record<string, string | undefined>>) => void;
}

const NO_FILTERS = {
  rateLimitId: undefined,
  consumerApiKeyId: undefined,
  tag: undefined,
  externalId: undefined,
} as const;

/** The controls for the span, the grouping and the filters. */
export function UsageControls({ view, onChange }: UsageControlsProps) {
  const { can } = useScopes();
  const { filters } = view;
  const isFiltered = Object.keys(filters).length > 0;
  const remove = (fields: Partial<typeof NO_FILTERS>) => {
    onChange(fields);
    focusFilters();
  };
  return (
    <search className={styles.controls}>
      <RangeControls view={view} onChange={onChange} />
      <Control label="Table by">
        <Select
          value={view.groupBy ?? ''}
          options={[['', 'Time'], ...Object.entries(GROUPINGS)]}
          onText={(groupBy) => onChange({ groupBy })}
        />
      </Control>
      {can('plans:read') && (
        <PlanFilter value={filters.rateLimitId} onChange={(rateLimitId) => onChange({ rateLimitId })} />
      )}
      <TextFilter label="Tag" value={filters.tag} onChange={(tag) => onChange({ tag })} />
      <TextFilter
        label="Owner"
        value={filters.externalId}
        onChange={(externalId) => onChange({ externalId })}
      />
      <label className={styles.check}>
        <input
          type="checkbox"
          checked={view.isCompared}
          onChange={(event) => onChange({ compare: event.target.checked ? '1' : undefined })}
        />
        Compare with before
      </label>
      {filters.consumerApiKeyId !== undefined && (
        <KeyChip id={filters.consumerApiKeyId} onRemove={() => remove({ consumerApiKeyId: undefined })} />
      )}
      {isFiltered && (
        <Button look="quiet" onClick={() => remove(NO_FILTERS)}>
          Clear filters
        </Button>
      )}
    </search>
  );
}

function KeyChip({ id, onRemove }: { readonly id: string; readonly onRemove: () => void }) {
  return (
    <span className={styles.chip}>
      Key: <KeyName id={id} />
      <Button look="quiet" small icon aria-label="Show all keys" onClick={onRemove}>
        <X aria-hidden="true" />
      </Button>
    </span>
  );
}

const RANGE_OPTIONS: readonly Option[] = [
  ...Object.entries(RANGES).map(([value, { label }]): Option => [value, label]),
  ['custom', 'From … to …'],
];

function RangeControls({ view, onChange }: UsageControlsProps) {
  const { range, dates, interval, isUtc } = view;
  const chooseRange = (value: string) => {
    // Another range has its own default interval.
    const plain = { from: undefined, to: undefined, interval: undefined };
    if (value !== 'custom') return onChange({ ...plain, range: value === '24h' ? undefined : value });
    const today = dateOf(now(), isUtc);
    onChange({ ...plain, range: undefined, from: today, to: today });
  };
  return (
    <>
      <Control label="Range">
        <Select value={range} options={RANGE_OPTIONS} onText={chooseRange} />
      </Control>
      {dates !== undefined && <DayControls dates={dates} onChange={onChange} />}
      <Control label="Chart by">
        <Select
          value={interval}
          options={Object.entries(INTERVAL_LABELS)}
          onText={(chosen) => onChange({ interval: chosen })}
        />
      </Control>
      {localTimeZone() !== 'UTC' && (
        <Control label="Time zone">
          <Select
            value={isUtc ? 'utc' : ''}
            options={[
              ['', localTimeZone()],
              ['utc', 'UTC'],
            ]}
            onText={(zone) => onChange({ zone })}
          />
        </Control>
      )}
    </>
  );
}

interface DayControlsProps extends Pick<UsageControlsProps, 'onChange'> {
  readonly dates: NonNullable<UsageView['dates']>;
}

/**
 * Applies dates once they are a range: on the way to the day 25 a browser gives the day 2, which may be before the first day. Dates that
 * are still no range when the focus leaves both fields are replaced by those of the usage that is shown.
 */
function DayControls({ dates: { first, last }, onChange }: DayControlsProps) {
  const [typed, setTyped] = useState({ first, last });
  useEffect(() => setTyped({ first, last }), [first, last]);
  const change = (dates: typeof typed) => {
    setTyped(dates);
    if (isRange(dates)) onChange({ from: dates.first, to: dates.last });
  };
  const leave = ({ relatedTarget: next }: FocusEvent) => {
    const isOtherDay = next instanceof HTMLInputElement && next.type === 'date';
    if (!isOtherDay && !isRange(typed)) setTyped({ first, last });
  };
  return (
    <>
      <Control label="First day">
        <Input
          type="date"
          value={typed.first}
          max={typed.last}
          aria-invalid={!isRange(typed)}
          onChange={({ target }) => change({ ...typed, first: target.value })}
          onBlur={leave}
        />
      </Control>
      <Control label="Last day">
        <Input
          type="date"
          value={typed.last}
          min={typed.first}
          aria-invalid={!isRange(typed)}
          onChange={({ target }) => change({ ...typed, last: target.value })}
          onBlur={leave}
        />
      </Control>
    </>
  );
}

interface FilterProps {
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}

function PlanFilter({ value = '', onChange }: FilterProps) {
  return (
    <Control label="Plan">
      <Select value={value} options={usePlanOptions(value, 'All plans')} onText={onChange} />
    </Control>
  );
}

/** Applies when the field loses the focus, or with Enter, not with each letter. */
function TextFilter({ label, value = '', onChange }: FilterProps & { readonly label: string }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const apply = () => {
    if (text.trim() !== value) onChange(text.trim());
  };
  return (
    <Control label={label}>
      <Input
        value={text}
        placeholder="any"
        onChange={(event) => setText(event.target.value)}
        onBlur={apply}
        onKeyDown={(event) => event.key === 'Enter' && apply()}
      />
    </Control>
  );
}

function Control({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is its child
    <label className={styles.control}>
      <span>{label}</span>
      {children}
    </label>
  );
}
