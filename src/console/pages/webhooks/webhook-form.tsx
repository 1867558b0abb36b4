import { useApi } from '../../api/api-context.tsx';
import { Checkbox, TextField } from '../../components/forms/field.tsx';
import { EventPicker } from './event-picker.tsx';
import { HeaderFields } from './header-fields.tsx';
import { messageFor, type WebhookDraft } from './webhook-draft.ts';

interface WebhookFormProps {
  readonly draft: WebhookDraft;
  readonly onChange: (draft: WebhookDraft) => void;
  /** The names of the headers that the webhook has already. */
  readonly present?: readonly string[];
  /** The error of the last attempt to save. */
  readonly error: unknown;
}

/** The fields of a new or an existing webhook. */
export function WebhookForm({ draft, onChange, present = [], error }: WebhookFormProps) {
  const set = (changes: Partial<WebhookDraft>) => onChange({ ...draft, ...changes });
  return (
    <>
      <TextField
        label="Address"
        error={messageFor(error, 'url')}
        hint="An https URL that is reached from the gateway at a public address."
        placeholder="https://example.com/hooks/tollgate"
        type="url"
        inputMode="url"
        autoComplete="off"
        spellCheck={false}
        autoFocus
        required
        maxLength={2048}
        value={draft.url}
        onText={(url) => set({ url })}
      />
      <TextField
        label="Description"
        optional
        error={messageFor(error, 'description')}
        hint="What it is for: its name in the lists."
        placeholder="Billing"
        autoComplete="off"
        maxLength={255}
        value={draft.description}
        onText={(description) => set({ description })}
      />
      <EventPicker
        chosen={draft.events}
        onChange={(events) => set({ events })}
        error={messageFor(error, 'events')}
      />
      <TagsField draft={draft} set={set} error={messageFor(error, 'onlyTags')} />
      <HeaderFields
        headers={draft.headers}
        present={present}
        onChange={(headers) => set({ headers })}
        error={messageFor(error, 'headers')}
      />
      <Checkbox
        label="Send events of usage together"
        hint="Up to 500 in one request, as a batch of CloudEvents."
        checked={draft.batch}
        onChange={({ target }) => set({ batch: target.checked })}
      />
    </>
  );
}

interface TagsFieldProps {
  readonly draft: WebhookDraft;
  readonly set: (changes: Partial<WebhookDraft>) => void;
  readonly error: string | undefined;
}

function TagsField({ draft, set, error }: TagsFieldProps) {
  const own = useApi().whoami.onlyTags;
  const always = own.length === 0 ? '' : ` This token’s own are added: ${own.join(', ')}.`;
  return (
    <TextField
      label="Only events about records with all of these tags"
      optional
      error={error}
      hint={`Separated by blanks, such as eu partner:acme.${always}`}
      autoComplete="off"
      value={draft.onlyTags}
      onText={(onlyTags) => set({ onlyTags })}
    />
  );
}
