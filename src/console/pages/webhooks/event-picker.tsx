import { useState } from 'react';
import { useScopes } from '../../api/api-context.tsx';
import { Checkbox } from '../../components/forms/field.tsx';
import {
  covers,
  EVERYTHING,
  hearableGroups,
  otherPatterns,
  scopesOf,
  type TypeGroup,
  toggled,
} from './event-choice.ts';
import styles from './webhooks.module.css';

interface EventPickerProps {
  /** Types, and beginnings of types with `*`. */
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
  readonly error: string | undefined;
}

/** Chooses types of events, each with when it is sent. Types that the token may not hear are hidden. */
export function EventPicker({ chosen, onChange, error }: EventPickerProps) {
  const { can } = useScopes();
  const groups = hearableGroups(can);
  const choice = {
    isChosen: (pattern: string) => chosen.includes(pattern),
    /** Chosen already as a part of something larger. */
    isCovered: (pattern: string) => chosen.some((each) => each !== pattern && covers(each, pattern)),
    toggle: (pattern: string, isChosen: boolean) => onChange(toggled(chosen, pattern, isChosen)),
  };
  const others = otherPatterns(chosen);
  return (
    <fieldset aria-describedby={error === undefined ? undefined : 'events-error'}>
      <legend>Events</legend>
      {error !== undefined && (
        <p id="events-error" className={styles.error} role="alert">
          {error}
        </p>
      )}
      {scopesOf([EVERYTHING]).every(can) && (
        <PatternBox
          pattern={EVERYTHING}
          label="Everything"
          hint="Types that a later version adds as well."
          {...choice}
        />
      )}
      {groups.map((group) => (
        <Group key={group.pattern} group={group} {...choice} />
      ))}
      {others.length > 0 && (
        <div className={styles.group}>
          <h3>Other patterns</h3>
          {others.map((pattern) => (
            <PatternBox key={pattern} pattern={pattern} label={<code>{pattern}</code>} {...choice} />
          ))}
        </div>
      )}
    </fieldset>
  );
}

interface Choice {
  readonly isChosen: (pattern: string) => boolean;
  readonly isCovered: (pattern: string) => boolean;
  readonly toggle: (pattern: string, isChosen: boolean) => void;
}

function Group({ group: { name, pattern, types }, ...choice }: Choice & { readonly group: TypeGroup }) {
  const isWhole = choice.isChosen(pattern) || choice.isCovered(pattern);
  const count = types.filter(({ type }) => choice.isChosen(type)).length;
  // It does not change with the choice: the group would close when its last box is cleared.
  const [isOpen] = useState(count > 0);
  return (
    <details className={styles.group} open={isOpen || undefined}>
      <summary>
        {name}
        <span className={styles.count}>
          {isWhole ? 'all' : count > 0 ? `${count} of ${types.length}` : ''}
        </span>
      </summary>
      <div className={styles.types}>
        <PatternBox
          pattern={pattern}
          label={
            <>
              All: <code>{pattern}</code>
            </>
          }
          {...choice}
        />
        {types.map(({ type, when }) => (
          <PatternBox key={type} pattern={type} label={<code>{type}</code>} hint={when} {...choice} />
        ))}
      </div>
    </details>
  );
}

interface PatternBoxProps extends Choice {
  readonly pattern: string;
  readonly label: React.ReactNode;
  readonly hint?: string;
}

function PatternBox({ pattern, label, hint, isChosen, isCovered, toggle }: PatternBoxProps) {
  const covered = isCovered(pattern);
  return (
    <Checkbox
      label={label}
      {...(hint !== undefined && { hint })}
      checked={covered || isChosen(pattern)}
      disabled={covered}
      onChange={({ target }) => toggle(pattern, target.checked)}
    />
  );
}
