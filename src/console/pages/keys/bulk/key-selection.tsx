import { useMemo, useState } from 'react';
import { useScopes } from '../../../api/api-context.tsx';
import type { Column } from '../../../components/layout/data-table.tsx';
import type { ListedKey } from '../key-model.ts';
import styles from './bulk.module.css';

/** The keys whose box is ticked. */
export interface KeySelection {
  readonly ids: ReadonlySet<string>;
  readonly clear: () => void;
  /** The column of boxes; undefined for a token that may change no keys. */
  readonly column: Column<ListedKey> | undefined;
}

/** Another filter begins a new selection: what is out of sight must not be changed by mistake. */
export function useKeySelection(filter: object): KeySelection {
  const { can } = useScopes();
  const key = JSON.stringify(filter);
  const [selected, setSelected] = useState<{ readonly key: string; readonly ids: ReadonlySet<string> }>({
    key,
    ids: NONE,
  });
  const ids = selected.key === key ? selected.ids : NONE;
  const mayChange = can('keys:write') || can('keys:delete');
  const column = useMemo((): Column<ListedKey> | undefined => {
    if (!mayChange) return undefined;
    const toggle = (id: string) => {
      const next = new Set(ids);
      if (!next.delete(id)) next.add(id);
      setSelected({ key, ids: next });
    };
    return {
      id: 'select',
      header: 'Select',
      hiddenHeader: true,
      cell: ({ consumerApiKeyId, name }) => (
        <label className={styles.box}>
          <input
            type="checkbox"
            aria-label={`Select ${name}`}
            checked={ids.has(consumerApiKeyId)}
            onChange={() => toggle(consumerApiKeyId)}
          />
        </label>
      ),
    };
  }, [mayChange, ids, key]);
  return { ids, column, clear: () => setSelected({ key, ids: NONE }) };
}

const NONE: ReadonlySet<string> = new Set();
