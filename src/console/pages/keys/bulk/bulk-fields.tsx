import { useScopes } from '../../../api/api-context.tsx';
import { SelectField, TextField } from '../../../components/forms/field.tsx';
import { localTimeZone } from '../../../format/exact-time.ts';
import { PlanField } from '../plan-choice.tsx';
import { BULK_ACTIONS, type BulkAction, type BulkDraft } from './bulk-request.ts';

interface BulkFieldsProps {
  readonly draft: BulkDraft;
  readonly onChange: (draft: BulkDraft) => void;
}

/** What is done with the keys, and the value that it needs. */
export function BulkFields({ draft, onChange }: BulkFieldsProps) {
  const { can } = useScopes();
  const actions = (Object.keys(BULK_ACTIONS) as BulkAction[]).filter((action) =>
    can(BULK_ACTIONS[action].scope),
  );
  return (
    <>
      <SelectField
        label="Action"
        value={draft.action}
        options={actions.map((action) => [action, BULK_ACTIONS[action].label])}
        onText={(action) => onChange({ ...draft, action: action as BulkAction })}
      />
      <ValueField draft={draft} onChange={onChange} />
    </>
  );
}

function ValueField({ draft, onChange }: BulkFieldsProps) {
  const set = (changes: Partial<BulkDraft>) => onChange({ ...draft, ...changes });
  switch (draft.action) {
    case 'add-tags':
    case 'remove-tags':
      return (
        <TextField
          label="Tags"
          hint="Separated by blanks, such as eu paid."
          autoComplete="off"
          value={draft.tags}
          onText={(tags) => set({ tags })}
        />
      );
    case 'set-plan':
      return <PlanField value={draft.rateLimitId} onChange={(rateLimitId) => set({ rateLimitId })} />;
    case 'set-expiry':
      return (
        <TextField
          label="Expires"
          hint={`Never when empty. In the time zone ${localTimeZone()}.`}
          type="datetime-local"
          step={1}
          value={draft.expiresAt}
          onText={(expiresAt) => set({ expiresAt })}
        />
      );
    case 'clear-override':
      return (
        <TextField
          label="Limit"
          optional
          hint="The id of a limit, such as main. All overrides when empty."
          autoComplete="off"
          value={draft.limitId}
          onText={(limitId) => set({ limitId })}
        />
      );
    case 'enable':
    case 'disable':
    case 'delete':
      return null;
  }
}
