import type { components } from '../../../../client/management-api.ts';
import { type Option, SelectField, TextField } from '../../../components/forms/field.tsx';

/** How a new secret reaches its consumer; `0` seconds: it is shown in the console. */
export interface HandoverDraft {
  readonly ttlSeconds: number;
  readonly note: string;
}

export const NO_HANDOVER: HandoverDraft = { ttlSeconds: 0, note: '' };

/** By seconds. */
const TIMES: readonly Option[] = [
  [0, 'Show it here, once'],
  [3600, 'By a link that works for 1 hour'],
  [86_400, 'By a link that works for 24 hours'],
  [604_800, 'By a link that works for 7 days'],
];

interface HandoverChoiceProps {
  readonly draft: HandoverDraft;
  readonly onChange: (draft: HandoverDraft) => void;
}

/** Asks how the secret is handed over. */
export function HandoverChoice({ draft, onChange }: HandoverChoiceProps) {
  return (
    <>
      <SelectField
        label="Hand the secret over"
        hint="A link shows the secret once, to the person who opens it first. You never see the secret."
        value={draft.ttlSeconds}
        options={TIMES}
        onText={(seconds) => onChange({ ...draft, ttlSeconds: Number(seconds) })}
      />
      {draft.ttlSeconds > 0 && (
        <TextField
          label="Note for the consumer"
          optional
          hint="The page of the link shows it."
          maxLength={256}
          value={draft.note}
          onText={(note) => onChange({ ...draft, note })}
        />
      )}
    </>
  );
}

/** The field of the request's body. */
export function handoverField({ ttlSeconds, note }: HandoverDraft): {
  readonly handover?: components['schemas']['MakeHandoverRequest'];
} {
  if (ttlSeconds === 0) return {};
  return { handover: { ttlSeconds, ...(note.trim() !== '' && { note: note.trim() }) } };
}
