import { Button } from '../../../components/forms/button.tsx';
import { DialogActions } from '../../../components/layout/dialog.tsx';
import { PlainTable } from '../../../components/layout/plain-table.tsx';
import { FIELD_LABELS, fieldsOf, type KeyDraft, type KeyFields } from './key-draft.ts';

interface KeyConflictProps {
  /** The version that both were edited from. */
  readonly base: KeyDraft;
  readonly theirs: KeyDraft;
  readonly mine: KeyDraft;
  readonly onTakeTheirs: () => void;
  /** Returns to the form with both versions merged: fields edited here keep their values. */
  readonly onBack: () => void;
  readonly onKeepMine: () => void;
}

/** Shows two versions of a key side by side: the gateway's, and the one in the form. */
export function KeyConflict({ base, theirs, mine, onTakeTheirs, onBack, onKeepMine }: KeyConflictProps) {
  const [was, now, wanted] = [base, theirs, mine].map(fieldsOf) as [KeyFields, KeyFields, KeyFields];
  const names = (Object.keys(FIELD_LABELS) as (keyof KeyFields)[]).filter(
    (name) => text(was[name]) !== text(now[name]) || text(was[name]) !== text(wanted[name]),
  );
  return (
    <>
      <PlainTable heads={[['Field'], ['Was'], ['Is now'], ['Yours']]}>
        {names.map((name) => (
          <tr key={name}>
            <th scope="row">{FIELD_LABELS[name]}</th>
            {[was, now, wanted].map((fields, version) => (
              <td key={['was', 'now', 'wanted'][version]}>
                <bdi>{text(fields[name]) || '–'}</bdi>
              </td>
            ))}
          </tr>
        ))}
        {names.length === 0 && (
          <tr>
            <td colSpan={4}>Only what this form does not show has changed: the state, or overrides.</td>
          </tr>
        )}
      </PlainTable>
      <DialogActions>
        <Button onClick={onTakeTheirs}>Discard mine</Button>
        <Button onClick={onBack}>Back to the form</Button>
        <Button look="primary" onClick={onKeepMine}>
          Save mine over it
        </Button>
      </DialogActions>
    </>
  );
}

function text(value: KeyFields[keyof KeyFields]): string {
  if (value === null) return '';
  if (Array.isArray(value)) return value.join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
