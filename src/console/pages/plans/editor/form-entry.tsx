import { Trash2 } from 'lucide-react';
import type { ReactNode } from 'react';
import { Button } from '../../../components/forms/button.tsx';
import { focusAround } from '../../../components/forms/focus-around.ts';
import styles from '../plans.module.css';
import type { DraftFaults, PlanDraft } from './plan-draft.ts';

/** A part of the form that has a list of entries. */
export interface PartProps {
  readonly draft: PlanDraft;
  readonly set: (change: Partial<PlanDraft>) => void;
  readonly faults: DraftFaults;
}

interface FormEntryProps {
  readonly title: string;
  readonly onRemove: () => void;
  readonly children: ReactNode;
}

/** An entry of a list in the form, with its name and a button that removes it. */
export function FormEntry({ title, onRemove, children }: FormEntryProps) {
  return (
    <fieldset className={styles.entry}>
      <legend className="visually-hidden">{title}</legend>
      <div className={styles.entryHead}>
        <span aria-hidden="true" className={styles.entryTitle}>
          {title}
        </span>
        <Button ref={focusAround} look="quiet" small icon aria-label={`Remove ${title}`} onClick={onRemove}>
          <Trash2 aria-hidden="true" />
        </Button>
      </div>
      {children}
    </fieldset>
  );
}

/** The fault of a list as a whole. */
export function ListFault({ field, faults }: { readonly field: string; readonly faults: DraftFaults }) {
  const fault = faults[field];
  return fault === undefined ? null : <p role="alert">{fault}</p>;
}
