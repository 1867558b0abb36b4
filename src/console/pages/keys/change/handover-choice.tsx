import type { components } from '../../../../client/management-api.ts';
import { Field, Input, Select } from '../../../components/forms/field.tsx';

/** How a new secret reaches its consumer; `0` seconds: it is shown in the console. */
export interface HandoverDraft {
  readonly ttlSeconds: number;
  readonly note: string;
}

export const NO_HANDOVER: HandoverDraft = { ttlSeconds: 0, note: '' };

const TIMES = [
  { seconds: 0, label: 'Show it here, once' },
  { seconds: 3600, label: 'By a link that works for 1 hour' },
  { seconds: 86_400, label: 'By a link that works for 24 hours' },
  { seconds: 604_800, label: 'By a link that works for 7 days' },
];

interface HandoverChoiceProps {
  readonly draft: HandoverDraft;
  readonly onChange: (draft: HandoverDraft) => void;
}

/** Asks how the secret is handed over. */
export function HandoverChoice({ draft, onChange }: HandoverChoiceProps) {
  return (
    <>
      <Field
        label="Hand the secret over"
        hint="A link shows the secret once, to the person who opens it first. You never see the secret."
      >
        {(control) => (
          <Select
            {...control}
            value={draft.ttlSeconds}
            onChange={(event) => onChange({ ...draft, ttlSeconds: Number(event.target.value) })}
          >
            {TIMES.map(({ seconds, label }) => (
              <option key={seconds} value={seconds}>
                {label}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {draft.ttlSeconds > 0 && (
        <Field label="Note for the consumer" optional hint="The page of the link shows it.">
          {(control) => (
            <Input
              {...control}
              maxLength={256}
              value={draft.note}
              onChange={(event) => onChange({ ...draft, note: event.target.value })}
            />
          )}
        </Field>
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
