import { Plus } from 'lucide-react';
import { Button } from '../../../components/forms/button.tsx';
import { Checkbox, SelectField, TextField } from '../../../components/forms/field.tsx';
import { focusAround } from '../../../components/forms/focus-around.ts';
import { Panel } from '../../../components/layout/panel.tsx';
import styles from '../plans.module.css';
import { FormEntry, ListFault, type PartProps } from './form-entry.tsx';
import { PatternList } from './pattern-fields.tsx';
import { type DraftFaults, EMPTY_LIMIT, type LimitDraft } from './plan-draft.ts';
import { RateFields } from './rate-fields.tsx';

export const MAX_LIMITS = 7;

/** The additional limits of the plan. */
export function LimitsPanel({ draft: { additionalLimits }, set, faults }: PartProps) {
  const change = (index: number, limit: LimitDraft) =>
    set({ additionalLimits: additionalLimits.with(index, limit) });
  return (
    <Panel
      title="Additional limits"
      about="A request needs room in all of the limits that apply to it, and then counts in all of them."
      action={
        additionalLimits.length < MAX_LIMITS && (
          <Button
            ref={focusAround}
            small
            onClick={() => set({ additionalLimits: [...additionalLimits, EMPTY_LIMIT] })}
          >
            <Plus aria-hidden="true" />
            Add limit
          </Button>
        )
      }
    >
      {additionalLimits.length === 0 && (
        <p className={styles.none}>None: the plan has its own limit alone.</p>
      )}
      {additionalLimits.map((limit, index) => (
        <FormEntry
          // biome-ignore lint/suspicious/noArrayIndexKey: a limit is known by its place alone, and the form holds all that it shows
          key={index}
          title={limit.limitId === '' ? `Limit ${index + 1}` : `Limit “${limit.limitId}”`}
          onRemove={() => set({ additionalLimits: additionalLimits.toSpliced(index, 1) })}
        >
          <LimitFields
            limit={limit}
            onChange={(next) => change(index, next)}
            field={`additionalLimits[${index}]`}
            faults={faults}
          />
        </FormEntry>
      ))}
      <ListFault field="additionalLimits" faults={faults} />
    </Panel>
  );
}

interface LimitFieldsProps {
  readonly limit: LimitDraft;
  readonly onChange: (limit: LimitDraft) => void;
  readonly field: string;
  readonly faults: DraftFaults;
}

function LimitFields({ limit, onChange, field, faults }: LimitFieldsProps) {
  const set = (change: Partial<LimitDraft>) => onChange({ ...limit, ...change });
  return (
    <>
      <div className={styles.pair}>
        <TextField
          label="Name"
          error={faults[`${field}.limitId`]}
          hint="Shown to consumers, in headers."
          placeholder="burst"
          value={limit.limitId}
          onText={(text) => set({ limitId: text })}
        />
        <RateFields value={limit} onChange={set} field={field} faults={faults} />
        <SelectField
          label="Counted for"
          error={faults[`${field}.per`]}
          value={limit.per}
          options={[
            ['key', 'each key'],
            ['customer', 'each customer of a key'],
          ]}
          onText={(per) => set({ per: per === 'customer' ? 'customer' : 'key' })}
        />
      </div>
      <Checkbox
        label="Try it in shadow"
        hint="It counts and never rejects. The page of the plan shows what it would have rejected."
        checked={limit.mode === 'shadow'}
        onChange={(event) => set({ mode: event.target.checked ? 'shadow' : 'enforce' })}
      />
      <PatternList
        patterns={limit.match}
        onChange={(match) => set({ match })}
        field={`${field}.match`}
        faults={faults}
      />
    </>
  );
}
