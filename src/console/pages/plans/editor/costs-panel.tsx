import { Plus } from 'lucide-react';
import { Button } from '../../../components/forms/button.tsx';
import { SelectField, TextField } from '../../../components/forms/field.tsx';
import { focusAround } from '../../../components/forms/focus-around.ts';
import { Panel } from '../../../components/layout/panel.tsx';
import styles from '../plans.module.css';
import { FormEntry, ListFault, type PartProps } from './form-entry.tsx';
import { PatternFields } from './pattern-fields.tsx';
import { type CostDraft, type DraftFaults, EMPTY_COST } from './plan-draft.ts';

export const MAX_COSTS = 32;

/** The requests whose cost is not 1. */
export function CostsPanel({ draft: { costs }, set, faults }: PartProps) {
  return (
    <Panel
      title="Costs"
      about="A request costs 1, unless one of these matches it: the first one counts."
      action={
        costs.length < MAX_COSTS && (
          <Button ref={focusAround} small onClick={() => set({ costs: [...costs, EMPTY_COST] })}>
            <Plus aria-hidden="true" />
            Add cost
          </Button>
        )
      }
    >
      {costs.length === 0 && <p className={styles.none}>None: every request costs 1.</p>}
      {costs.map((cost, index) => (
        <FormEntry
          // biome-ignore lint/suspicious/noArrayIndexKey: a cost is known by its place alone, and the form holds all that it shows
          key={index}
          title={`Cost ${index + 1}`}
          onRemove={() => set({ costs: costs.toSpliced(index, 1) })}
        >
          <CostFields
            cost={cost}
            onChange={(next) => set({ costs: costs.with(index, next) })}
            field={`costs[${index}]`}
            faults={faults}
          />
        </FormEntry>
      ))}
      <ListFault field="costs" faults={faults} />
    </Panel>
  );
}

interface CostFieldsProps {
  readonly cost: CostDraft;
  readonly onChange: (cost: CostDraft) => void;
  readonly field: string;
  readonly faults: DraftFaults;
}

function CostFields({ cost, onChange, field, faults }: CostFieldsProps) {
  const set = (change: Partial<CostDraft>) => onChange({ ...cost, ...change });
  return (
    <>
      <div className={styles.pattern}>
        <PatternFields pattern={cost} onChange={set} field={field} faults={faults} />
      </div>
      <div className={styles.pair}>
        <SelectField
          label="Costs"
          value={cost.kind}
          options={[
            ['fixed', 'a fixed number'],
            ['response', 'what the backend reports'],
          ]}
          onText={(kind) => set({ kind: kind === 'response' ? 'response' : 'fixed' })}
        />
        {cost.kind === 'fixed' ? (
          <TextField
            label="Number"
            error={faults[`${field}.cost`]}
            hint="0 is free: counted in no limit."
            inputMode="numeric"
            value={cost.cost}
            onText={(text) => set({ cost: text })}
          />
        ) : (
          <TextField
            label="Reserve"
            optional
            error={faults[`${field}.reserve`]}
            hint="Taken until the header Tollgate-Cost arrives; 1 when empty."
            inputMode="numeric"
            value={cost.reserve}
            onText={(text) => set({ reserve: text })}
          />
        )}
      </div>
    </>
  );
}
