import type { ReactNode } from 'react';
import { TextField } from '../../../components/forms/field.tsx';
import { Panel } from '../../../components/layout/panel.tsx';
import { PanelStack } from '../../../components/layout/panels.tsx';
import { planWords } from '../limit-words.ts';
import styles from '../plans.module.css';
import { CostsPanel } from './costs-panel.tsx';
import { LimitsPanel } from './limits-panel.tsx';
import { type DraftFaults, type PlanDraft, readDraft } from './plan-draft.ts';
import { RateFields } from './rate-fields.tsx';
import { TryRequestPanel } from './try-request-panel.tsx';

interface PlanFormProps {
  readonly draft: PlanDraft;
  readonly onChange: (draft: PlanDraft) => void;
  readonly faults: DraftFaults;
  /** Shown above the other fields: the id of a new plan. */
  readonly children?: ReactNode;
}

/** The form with all terms of a plan. */
export function PlanForm({ draft, onChange, faults, children }: PlanFormProps) {
  const set = (change: Partial<PlanDraft>) => onChange({ ...draft, ...change });
  return (
    <PanelStack>
      <Panel title="Plan" about="Every request of a key counts towards its limit, called main.">
        {children}
        <TextField
          label="Description"
          optional
          error={faults.description}
          value={draft.description}
          maxLength={1024}
          onText={(text) => set({ description: text })}
        />
        <div className={styles.pair}>
          <RateFields value={draft} onChange={set} field="" faults={faults} />
        </div>
        <Preview draft={draft} />
      </Panel>
      <LimitsPanel draft={draft} set={set} faults={faults} />
      <CostsPanel draft={draft} set={set} faults={faults} />
      <TryRequestPanel draft={draft} />
    </PanelStack>
  );
}

/** The plan as a sentence, once the draft is valid. */
function Preview({ draft }: { readonly draft: PlanDraft }) {
  const { terms, faults } = readDraft(draft);
  if (Object.keys(faults).length > 0) return null;
  return <p className={styles.preview}>Allows {planWords(terms)}.</p>;
}
