import { useScopes } from '../../../api/api-context.tsx';
import { Field, Select, TextField } from '../../../components/forms/field.tsx';
import { timeZone } from '../../../format/exact-time.ts';
import { usePlanIds } from '../plan-ids.ts';
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
      <Field label="Action">
        {(control) => (
          <Select
            {...control}
            value={draft.action}
            onChange={({ target }) => onChange({ ...draft, action: target.value as BulkAction })}
          >
            {actions.map((action) => (
              <option key={action} value={action}>
                {BULK_ACTIONS[action].label}
              </option>
            ))}
          </Select>
        )}
      </Field>
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
          hint={`Never when empty. In the time zone ${timeZone}.`}
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

interface PlanFieldProps {
  readonly value: string;
  readonly onChange: (rateLimitId: string) => void;
}

function PlanField({ value, onChange }: PlanFieldProps) {
  const plans = usePlanIds();
  return (
    <Field label="Plan">
      {(control) => (
        <Select {...control} value={value} onChange={({ target }) => onChange(target.value)}>
          <option value="">The default plan</option>
          {plans.map((id) => (
            <option key={id} value={id}>
              {id}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}
