import { X } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useScopes } from '../../../api/api-context.tsx';
import { Button } from '../../../components/forms/button.tsx';
import { Input, Select } from '../../../components/forms/field.tsx';
import { focusFilters } from '../../../components/forms/focus-filters.ts';
import { usePlanOptions } from '../plan-choice.tsx';
import { type KeyFilter, STATES } from './key-filter.ts';
import styles from './keys-page.module.css';

const TYPING_MS = 250;

/** Filters that are set by links on other pages, and can only be removed here. */
const CHIPS = [
  { field: 'tag', label: 'Tag' },
  { field: 'externalId', label: 'Owner' },
  { field: 'unusedSince', label: 'Not used since' },
  { field: 'createdBefore', label: 'Created before' },
  { field: 'expiresBefore', label: 'Expires before' },
] as const;

/** The filters of the list of keys. */
export function KeyFilters({ filter }: { readonly filter: KeyFilter }) {
  const { can } = useScopes();
  return (
    <search className={styles.filters}>
      <SearchInput value={filter.get('q')} onChange={(text) => filter.set('q', text)} />
      <Select
        className={styles.filter}
        aria-label="State"
        value={filter.get('status') || 'active'}
        options={STATES}
        onText={(state) => filter.set('status', state === 'active' ? '' : state)}
      />
      {can('plans:read') && <PlanSelect filter={filter} />}
      {CHIPS.map(({ field, label }) => (
        <Chip
          key={field}
          name={label}
          value={filter.get(field)}
          onRemove={() => {
            filter.set(field, '');
            focusFilters();
          }}
        />
      ))}
      {(filter.isFiltered || filter.sort.column !== 'createdAt') && (
        <Button look="quiet" onClick={filter.clear}>
          {filter.isFiltered ? 'Clear filters' : 'Newest first'}
        </Button>
      )}
    </search>
  );
}

function PlanSelect({ filter }: { readonly filter: KeyFilter }) {
  const chosen = filter.get('rateLimitId');
  return (
    <Select
      className={styles.filter}
      aria-label="Plan"
      value={chosen}
      options={usePlanOptions(chosen, 'Any plan')}
      onText={(rateLimitId) => filter.set('rateLimitId', rateLimitId)}
    />
  );
}

interface SearchInputProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
}

/** Searches when the typing pauses. */
function SearchInput({ value, onChange }: SearchInputProps) {
  const [text, setText] = useState(value);
  const [asked, setAsked] = useState(value);
  // The URL was changed elsewhere: by the back button, or by "Clear filters".
  if (asked !== value) {
    setAsked(value);
    setText(value);
  }
  useEffect(() => {
    if (text.trim() === asked) return;
    const timer = setTimeout(() => {
      setAsked(text.trim());
      onChange(text.trim());
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, asked, onChange]);
  return (
    <Input
      type="search"
      className={styles.search}
      aria-label="Search keys"
      placeholder="Search by name, owner, id or hint"
      maxLength={255}
      value={text}
      onChange={({ target }) => setText(target.value)}
    />
  );
}

interface ChipProps {
  readonly name: string;
  readonly value: string;
  readonly onRemove: () => void;
}

/** A filter that was set by a link. */
function Chip({ name, value, onRemove }: ChipProps) {
  if (value === '') return null;
  return (
    <span className={styles.chip}>
      {name}: <bdi>{value}</bdi>
      <Button look="quiet" small icon aria-label={`Remove the filter ${name}`} onClick={onRemove}>
        <X aria-hidden="true" />
      </Button>
    </span>
  );
}
