import { type ReactNode, useEffect, useId, useState } from 'react';
import { Button } from '../../components/forms/button.tsx';
import { Input, Select } from '../../components/forms/field.tsx';
import styles from './audit.module.css';
import type { AuditFilter } from './audit-filter.ts';
import { ACTION_WORDS, type AuditAction } from './audit-words.ts';

interface AuditFiltersProps {
  readonly filter: AuditFilter;
  readonly onChange: (fields: Partial<AuditFilter>) => void;
  readonly isFiltered: boolean;
  /** How often the filters were cleared: texts that are not applied go then as well. */
  readonly clears: number;
  readonly onClear: () => void;
}

export function AuditFilters({ filter, onChange, isFiltered, clears, onClear }: AuditFiltersProps) {
  return (
    <search className={styles.filters}>
      <Filter label="Action" wide>
        <Select
          value={filter.action}
          options={[['', 'Any action'], ...Object.entries(ACTION_WORDS)]}
          onText={(action) => onChange({ action: action as AuditAction | '' })}
        />
      </Filter>
      <IdFilter
        key={`actor ${clears}`}
        label="Actor"
        placeholder="root, or adm_…"
        pattern={ACTOR_ID}
        value={filter.actorId}
        onChange={(actorId) => onChange({ actorId })}
      />
      <IdFilter
        key={`target ${clears}`}
        label="Target"
        placeholder="id of a key, plan or token"
        pattern={TARGET_ID}
        value={filter.targetId}
        onChange={(targetId) => onChange({ targetId })}
      />
      <Filter label="First day">
        <Input
          type="date"
          value={filter.from}
          max={filter.to || undefined}
          onChange={(event) => onChange({ from: event.target.value })}
        />
      </Filter>
      <Filter label="Last day">
        <Input
          type="date"
          value={filter.to}
          min={filter.from || undefined}
          onChange={(event) => onChange({ to: event.target.value })}
        />
      </Filter>
      {isFiltered && (
        <Button look="quiet" onClick={onClear}>
          Clear
        </Button>
      )}
    </search>
  );
}

/** What the gateway accepts as an id, or as the owner of a configuration. */
const TARGET_ID = /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,63}$/;
/** An id, or the subject of a person. */
const ACTOR_ID = /^[\x21-\x7e]{1,255}$/;

interface IdFilterProps {
  readonly label: string;
  readonly placeholder: string;
  readonly pattern: RegExp;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** Applies when the field loses the focus, or with Enter. A text that can't be an id is not requested. */
function IdFilter({ label, placeholder, pattern, value, onChange }: IdFilterProps) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const id = text.trim();
  const isId = id === '' || pattern.test(id);
  const apply = () => {
    if (isId && id !== value) onChange(id);
  };
  const faultId = useId();
  return (
    <Filter
      label={label}
      wide
      below={
        !isId && (
          <p id={faultId} className={styles.fault} role="alert">
            This is no id. Names are not searched.
          </p>
        )
      }
    >
      <Input
        value={text}
        placeholder={placeholder}
        aria-invalid={!isId}
        aria-describedby={isId ? undefined : faultId}
        spellCheck={false}
        onChange={(event) => setText(event.target.value)}
        onBlur={apply}
        onKeyDown={(event) => event.key === 'Enter' && apply()}
      />
    </Filter>
  );
}

interface FilterProps {
  readonly label: string;
  readonly wide?: boolean;
  readonly children: ReactNode;
  /** Not a part of the label. */
  readonly below?: ReactNode;
}

function Filter({ label, wide = false, children, below }: FilterProps) {
  return (
    <div className={wide ? styles.wideFilter : styles.filter}>
      {/* biome-ignore lint/a11y/noLabelWithoutControl: the control is its child */}
      <label>
        <span>{label}</span>
        {children}
      </label>
      {below}
    </div>
  );
}
