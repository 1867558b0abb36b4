import { useState } from 'react';
import { Checkbox, TextAreaField, TextField } from '../../../components/forms/field.tsx';
import { localTimeZone } from '../../../format/exact-time.ts';
import { PlanField } from '../plan-choice.tsx';
import { fieldsOf, type KeyDraft, type KeyFields, messageFor } from './key-draft.ts';
import styles from './key-form.module.css';

interface KeyFormProps {
  readonly draft: KeyDraft;
  readonly onChange: (draft: KeyDraft) => void;
  /** The error of the last attempt to save. */
  readonly error: unknown;
}

/** The fields of a new or an existing key. */
export function KeyForm({ draft, onChange, error }: KeyFormProps) {
  const set = (changes: Partial<KeyDraft>) => onChange({ ...draft, ...changes });
  const message = (field: keyof KeyFields) => messageFor(error, field);
  return (
    <>
      <TextField
        label="Name"
        error={message('name')}
        hint="What people know the key by; it need not be unique."
        autoFocus
        autoComplete="off"
        required
        maxLength={255}
        value={draft.name}
        onText={(name) => set({ name })}
      />
      <div className={styles.pair}>
        <PlanField
          value={draft.rateLimitId}
          error={message('rateLimitId')}
          onChange={(rateLimitId) => set({ rateLimitId })}
        />
        <TextField
          label="Expires"
          optional
          error={message('expiresAt')}
          hint={`Never when empty. In the time zone ${localTimeZone()}.`}
          type="datetime-local"
          step={1}
          value={draft.expiresAt}
          onText={(expiresAt) => set({ expiresAt })}
        />
      </div>
      <OwnerAndTags draft={draft} set={set} message={message} />
      <RareFields draft={draft} set={set} message={message} />
    </>
  );
}

interface FieldsProps {
  readonly draft: KeyDraft;
  readonly set: (changes: Partial<KeyDraft>) => void;
  /** The gateway's message about a field. */
  readonly message: (field: keyof KeyFields) => string | undefined;
}

function OwnerAndTags({ draft, set, message }: FieldsProps) {
  return (
    <div className={styles.pair}>
      <TextField
        label="Owner"
        optional
        error={message('externalId')}
        hint="Its id in your own system (externalId)."
        autoComplete="off"
        maxLength={128}
        value={draft.externalId}
        onText={(externalId) => set({ externalId })}
      />
      <TextField
        label="Tags"
        optional
        error={message('tags')}
        hint="Separated by blanks, such as eu paid."
        autoComplete="off"
        value={draft.tags}
        onText={(tags) => set({ tags })}
      />
    </div>
  );
}

/** Fields that most keys do not use: folded away if they are empty at first. */
function RareFields({ draft, set, message }: FieldsProps) {
  // It does not change with the draft: the section would close under the hands of a person who empties a field.
  const [isOpen] = useState(() => isRestricted(draft));
  const noJson = metadataFault(draft);
  return (
    <details className={styles.more} open={isOpen || undefined}>
      <summary>Where it may be used, metadata and self-service</summary>
      <TextAreaField
        label="Allowed addresses"
        optional
        error={message('allowedIps')}
        hint="Addresses and networks, one a line, such as 203.0.113.0/24. Any when empty."
        rows={2}
        value={draft.allowedIps}
        onText={(allowedIps) => set({ allowedIps })}
      />
      <TextAreaField
        label="Allowed origins"
        optional
        error={message('allowedOrigins')}
        hint="Of the web pages that may use it, one a line, such as https://app.example.com. Any when empty."
        rows={2}
        value={draft.allowedOrigins}
        onText={(allowedOrigins) => set({ allowedOrigins })}
      />
      <TextAreaField
        label="Metadata"
        optional
        error={noJson ?? message('metadata')}
        hint='A JSON object, such as {"team": "mobile"}.'
        rows={3}
        spellCheck={false}
        // The form is not submitted with it.
        ref={(area) => area?.setCustomValidity(noJson ?? '')}
        value={draft.metadata}
        onText={(metadata) => set({ metadata })}
      />
      <Checkbox
        label="The consumer may rotate the key"
        hint="With a request of self-service that presents the key."
        checked={draft.mayRotate}
        onChange={({ target }) => set({ mayRotate: target.checked })}
      />
    </details>
  );
}

/** Why the metadata is not valid JSON for a key; undefined if it is. */
function metadataFault(draft: KeyDraft): string | undefined {
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
