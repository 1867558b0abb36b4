import { Plus, Trash2 } from 'lucide-react';
import { useApi } from '../../../api/api-context.tsx';
import { Button } from '../../../components/forms/button.tsx';
import { TextField } from '../../../components/forms/field.tsx';
import { focusAround } from '../../../components/forms/focus-around.ts';
import styles from '../plans.module.css';
import { type DraftFaults, EMPTY_PATTERN, type PatternDraft } from './plan-draft.ts';
import { canonicalHint } from './tried-request.ts';

export const MAX_PATTERNS = 32;

interface PatternListProps {
  readonly patterns: readonly PatternDraft[];
  readonly onChange: (patterns: readonly PatternDraft[]) => void;
  readonly field: string;
  readonly faults: DraftFaults;
}

/** The patterns of the requests that a limit applies to; without patterns it applies to all requests. */
export function PatternList({ patterns, onChange, field, faults }: PatternListProps) {
  return (
    <>
      {patterns.map((pattern, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a pattern is known by its place alone, and the form holds all that it shows
        <div key={index} className={styles.pattern}>
          <PatternFields
            pattern={pattern}
            onChange={(change) => onChange(patterns.with(index, { ...pattern, ...change }))}
            field={`${field}[${index}]`}
            faults={faults}
          />
          <Button
            ref={focusAround}
            look="quiet"
            icon
            aria-label={`Remove the pattern ${pattern.path}`}
            onClick={() => onChange(patterns.toSpliced(index, 1))}
          >
            <Trash2 aria-hidden="true" />
          </Button>
        </div>
      ))}
      <div className={styles.none}>
        {patterns.length === 0 && 'Holds for every request. '}
        {patterns.length < MAX_PATTERNS && (
          <Button ref={focusAround} small onClick={() => onChange([...patterns, EMPTY_PATTERN])}>
            <Plus aria-hidden="true" />
            {patterns.length === 0 ? 'Only for some requests' : 'Add pattern'}
          </Button>
        )}
      </div>
    </>
  );
}

interface PatternFieldsProps {
  readonly pattern: PatternDraft;
  readonly onChange: (change: Partial<PatternDraft>) => void;
  readonly field: string;
  readonly faults: DraftFaults;
}

/** The fields for the methods and the path of a pattern. */
export function PatternFields({ pattern, onChange, field, faults }: PatternFieldsProps) {
  const { pathCase } = useApi().whoami.settings;
  return (
    <>
      <TextField
        label="Methods"
        optional
        error={faults[`${field}.methods`]}
        placeholder="all"
        value={pattern.methods}
        onText={(text) => onChange({ methods: text })}
      />
      <TextField
        label="Path"
        error={faults[`${field}.path`]}
        hint={canonicalHint(pattern.path.trim(), pathCase) ?? '* for one segment, ** at the end for the rest'}
        placeholder="/v1/search/**"
        value={pattern.path}
        onText={(text) => onChange({ path: text })}
      />
    </>
  );
}
