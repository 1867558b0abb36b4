import { useState } from 'react';
import { useScopes } from '../../../api/api-context.tsx';
import { Button } from '../../../components/forms/button.tsx';
import { focusFilters } from '../../../components/forms/focus-filters.ts';
import { counted, formatNumber } from '../../../format/numbers.ts';
import type { KeyListQuery } from '../list/key-filter.ts';
import styles from './bulk.module.css';
import { BulkDialog } from './bulk-dialog.tsx';
import type { ChosenKeys } from './bulk-request.ts';
import type { KeySelection } from './key-selection.tsx';

interface BulkBarProps {
  readonly selection: KeySelection;
  readonly filter: KeyListQuery;
  /** The keys that meet the filter; undefined until it is known. */
  readonly total: number | undefined;
}

/** What is selected, and what can be done with it. Shown while something is. */
export function BulkBar({ selection, filter, total }: BulkBarProps) {
  const { can } = useScopes();
  const [chosen, setChosen] = useState<ChosenKeys>();
  const { ids } = selection;
  const mayChange = can('keys:write') || can('keys:delete');
  if (!mayChange || (ids.size === 0 && chosen === undefined)) return null;
  const clear = () => {
    selection.clear();
    focusFilters();
  };
  return (
    <section className={styles.bar} aria-label="Selected keys">
      <strong>{formatNumber(ids.size)} selected</strong>
      <Button small look="primary" onClick={() => setChosen({ ids: [...ids] })}>
        Change selected…
      </Button>
      {total !== undefined && total > ids.size && (
        <Button small onClick={() => setChosen({ filter })}>
          Change all {counted(total, 'key')} that match…
        </Button>
      )}
      <Button small look="quiet" onClick={clear}>
        Clear selection
      </Button>
      {chosen !== undefined && (
        <BulkDialog chosen={chosen} onDelete={selection.clear} onClose={() => setChosen(undefined)} />
      )}
    </section>
  );
}
