import { Checkbox, Field, Input, Select, TextArea } from '../../../components/forms/field.tsx';
import { timeZone } from '../../../format/exact-time.ts';
import { usePlanIds } from '../plan-ids.ts';
import { fieldsOf, type KeyDraft, type KeyFields, messageFor } from './key-draft.ts';
import styles from './key-form.module.css';

interface KeyFormProps {
  readonly draft: KeyDraft;
  readonly onChange: (draft: KeyDraft) => void;
  /** Of the last attempt to save. */
  readonly error: unknown;
}

/** The fields of a key, to make one and to change one. */
export function KeyForm({ draft, onChange, error }: KeyFormProps) {
  const plans = usePlanIds();
  const set = (changes: Partial<KeyDraft>) => onChange({ ...draft, ...changes });
  const message = (field: keyof KeyFields) => messageFor(error, field);
  return (
    <>
      <Field label="Name" error={message('name')} hint="What people know the key by; it need not be unique.">
        {(control) => (
          <Input
            {...control}
            autoFocus
            autoComplete="off"
            required
            maxLength={255}
            value={draft.name}
            onChange={({ target }) => set({ name: target.value })}
          />
        )}
      </Field>
      <div className={styles.pair}>
        <Field label="Plan" error={message('rateLimitId')}>
          {(control) => (
            <Select
              {...control}
              value={draft.rateLimitId}
              onChange={({ target }) => set({ rateLimitId: target.value })}
            >
              <option value="">The default plan</option>
              {[...new Set([...plans, ...(draft.rateLimitId === '' ? [] : [draft.rateLimitId])])].map(
                (id) => (
                  <option key={id} value={id}>
                    {id}
                  </option>
                ),
              )}
            </Select>
          )}
        </Field>
        <Field
          label="Expires"
          optional
          error={message('expiresAt')}
          hint={`Never when empty. In the time zone ${timeZone}.`}
        >
          {(control) => (
            <Input
              {...control}
              type="datetime-local"
              step={1}
              value={draft.expiresAt}
              onChange={({ target }) => set({ expiresAt: target.value })}
            />
          )}
        </Field>
      </div>
      <div className={styles.pair}>
        <Field
          label="Owner"
          optional
          error={message('externalId')}
          hint="Its id in your own system (externalId)."
        >
          {(control) => (
            <Input
              {...control}
              autoComplete="off"
              maxLength={128}
              value={draft.externalId}
              onChange={({ target }) => set({ externalId: target.value })}
            />
          )}
        </Field>
        <Field label="Tags" optional error={message('tags')} hint="Separated by blanks, such as eu paid.">
          {(control) => (
            <Input
              {...control}
              autoComplete="off"
              value={draft.tags}
              onChange={({ target }) => set({ tags: target.value })}
            />
          )}
        </Field>
      </div>
      <details className={styles.more} open={isRestricted(draft) || undefined}>
        <summary>Where it may be used, metadata and self-service</summary>
        <Field
          label="Allowed addresses"
          optional
          error={message('allowedIps')}
          hint="Addresses and networks, one a line, such as 203.0.113.0/24. Any when empty."
        >
          {(control) => (
            <TextArea
              {...control}
              rows={2}
              value={draft.allowedIps}
              onChange={({ target }) => set({ allowedIps: target.value })}
            />
          )}
        </Field>
        <Field
          label="Allowed origins"
          optional
          error={message('allowedOrigins')}
          hint="Of the web pages that may use it, one a line, such as https://app.example.com. Any when empty."
        >
          {(control) => (
            <TextArea
              {...control}
              rows={2}
              value={draft.allowedOrigins}
              onChange={({ target }) => set({ allowedOrigins: target.value })}
            />
          )}
        </Field>
        <Field
          label="Metadata"
          optional
          error={message('metadata') ?? metadataFault(draft)}
          hint='A JSON object, such as {"team": "mobile"}.'
        >
          {(control) => (
            <TextArea
              {...control}
              rows={3}
              spellCheck={false}
              value={draft.metadata}
              onChange={({ target }) => set({ metadata: target.value })}
            />
          )}
        </Field>
        <Checkbox
          label="The consumer may rotate the key"
          hint="With a request of self-service that presents the key."
          checked={draft.mayRotate}
          onChange={({ target }) => set({ mayRotate: target.checked })}
        />
      </details>
    </>
  );
}

/** Why the metadata can't be sent. */
export function metadataFault(draft: KeyDraft): string | undefined {
  try {
    fieldsOf(draft);
    return undefined;
  } catch (fault) {
    return `This is no JSON: ${fault instanceof Error ? fault.message : String(fault)}`;
  }
}

function isRestricted({ allowedIps, allowedOrigins, metadata, mayRotate }: KeyDraft): boolean {
  return allowedIps !== '' || allowedOrigins !== '' || metadata !== '' || mayRotate;
}
